// Runs the code that readers copy: the first ts block after `<!-- run -->` in README.md, and each example's own check,
// `check.ts` or `check.mjs`, which ends by itself and exits 0 on success.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { exampleOf, root } from "./packed.mjs";

/** Ends a program that hangs; no program takes a tenth of it, however slow the machine. */
const TIMEOUT_MS = 900_000;
// Inside the repository, so that `holdfast` resolves to the package itself, as built.
const scratch = path.join(root, ".holdfast", `check-${process.pid}`);

/** @type {string[]} */
const problems = [];
fs.mkdirSync(scratch, { recursive: true });
try {
  checkReadme();
  for (const file of exampleChecks()) {
    const folder = fs.mkdtempSync(path.join(scratch, "example-"));
    runTypeScript({ name: path.relative(root, file), file, cwd: folder });
  }
} finally {
  fs.rmSync(scratch, { recursive: true, force: true });
}
for (const problem of problems) console.error(`✗ ${problem}`);
process.exitCode = problems.length > 0 ? 1 : 0;

function checkReadme() {
  const readme = path.join(root, "README.md");
  const text = fs.existsSync(readme) ? fs.readFileSync(readme, "utf8") : "";
  const example = exampleOf(text);
  if (example === null) {
    problems.push("README.md has no ts block after a line `<!-- run -->`.");
    return;
  }
  const file = path.join(scratch, "readme.ts");
  fs.writeFileSync(file, example);
  fs.writeFileSync(
    path.join(scratch, "tsconfig.json"),
    JSON.stringify({ extends: "../../tsconfig.json", include: ["readme.ts"] }),
  );
  report("README.md, types", run({ program: "tsc", args: ["-p", scratch], cwd: root }));
  runTypeScript({ name: "README.md", file, cwd: scratch });
}

function exampleChecks() {
  const folder = path.join(root, "examples");
  if (!fs.existsSync(folder)) return [];
  return fs
    .readdirSync(folder)
    .sort()
    .flatMap((name) => ["check.ts", "check.mjs"].map((file) => path.join(folder, name, file)))
    .filter((file) => fs.existsSync(file));
}

/** @param {{ name: string, file: string, cwd: string }} params */
function runTypeScript({ name, file, cwd }) {
  report(name, run({ program: "tsx", args: [file], cwd }));
}

/** @param {{ program: string, args: string[], cwd: string }} params */
function run({ program, args, cwd }) {
  const file = path.join(root, "node_modules", ".bin", program);
  return spawnSync(file, args, { cwd, encoding: "utf8", timeout: TIMEOUT_MS });
}

/**
 * @param {string} name
 * @param {import("node:child_process").SpawnSyncReturns<string>} ended
 */
function report(name, ended) {
  if (ended.status === 0) {
    console.log(`✓ ${name}`);
    return;
  }
  const how =
    ended.error?.message ?? (ended.signal ? `signal ${ended.signal}` : `exit code ${ended.status}`);
  problems.push(`${name}: ${how}\n${ended.stdout}${ended.stderr}`);
}
