// Packs the package as it would be published, does the tutorial with it in an empty folder, and uses it
// there further: the types, one job on SQLite from start to end, and the command line.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { doTutorial } from "./tutorial.mjs";

const SMOKE = `
import { Holdfast } from "holdfast";
import { createTestHoldfast } from "holdfast/testing";

const holdfast = new Holdfast({ database: "sqlite:smoke.db" });
const double = holdfast.job("double", {
  async run(input: { n: number }) {
    return { n: input.n * 2 };
  },
});
await holdfast.start();
const { id } = await double.enqueue({ n: 21 });
await holdfast.runs.wait(id, { timeout: "30s" });
const run = await holdfast.runs.get(id);
await holdfast.stop();
const answer = run?.result as { n: number } | undefined;
if (run?.status !== "completed" || answer?.n !== 42) throw new Error(JSON.stringify(run));

const kit = await createTestHoldfast({
  setup(test) {
    test.schedule("daily", test.job("nothing", { run: async () => null }), { cron: "@daily" });
  },
});
await kit.start();
await kit.advance("3d");
if ((await kit.ranAt("daily")).length !== 3) throw new Error(JSON.stringify(await kit.runs()));
await kit.close();
`;

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const bin = path.join(root, "node_modules", ".bin");
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-package-"));
const project = path.join(scratch, "project");

try {
  // The build is the caller's business; --ignore-scripts keeps npm from repeating it.
  const packed = run(
    "npm",
    ["pack", "--ignore-scripts", "--json", "--pack-destination", scratch],
    root,
  );
  const [{ filename, files }] = JSON.parse(packed);
  const paths = files.map((/** @type {{ path: string }} */ file) => file.path);
  for (const needed of [
    "dist/index.js",
    "dist/index.d.ts",
    "dist/cli/main.js",
    "dist/client/index.js",
    "dist/client/index.d.ts",
    "dist/testing/index.js",
    "dist/testing/index.d.ts",
    "LICENSE",
    "README.md",
  ]) {
    if (!paths.includes(needed)) throw new Error(`The package lacks ${needed}.`);
  }
  const stray = paths.filter((/** @type {string} */ name) =>
    /\.test\.|^(src|test|scripts)\//.test(name),
  );
  if (stray.length > 0) throw new Error(`The package contains ${stray.join(", ")}.`);
  const tarball = path.join(scratch, filename);
  run(path.join(bin, "publint"), [tarball, "--strict"], root);

  fs.mkdirSync(project);
  const page = path.join(root, "docs", "start", "tutorial.md");
  doTutorial({ page, folder: project, tarball, env: outsideOfNpm() });
  fs.writeFileSync(path.join(project, "smoke.ts"), SMOKE);
  const strict = ["--strict", "--module", "nodenext", "--target", "es2023", "--skipLibCheck"];
  run(path.join(bin, "tsc"), [...strict, "--types", "", "smoke.ts"], project);
  run(process.execPath, ["smoke.js"], project);
  const help = run("npx", ["--no-install", "holdfast", "--help"], project);
  if (!/usage/i.test(help)) throw new Error(`holdfast --help printed no usage:\n${help}`);
  console.log(
    `✓ ${filename}: ${paths.length} files, does the tutorial, runs a job, answers --help`,
  );
} catch (error) {
  console.error(`✗ ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  fs.rmSync(scratch, { recursive: true, force: true });
}

/** Without the variables of an outer npm, which would turn an install here into one in the repository. */
function outsideOfNpm() {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^npm_/i.test(name) || /registry/i.test(name),
  );
  return Object.fromEntries(kept);
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {string} cwd
 */
function run(program, args, cwd) {
  const ended = spawnSync(program, args, {
    cwd,
    env: outsideOfNpm(),
    encoding: "utf8",
    timeout: 180_000,
    shell: process.platform === "win32",
  });
  if (ended.status === 0) return ended.stdout;
  const why = ended.error?.message ?? `${ended.stdout}${ended.stderr}`;
  throw new Error(`${path.basename(program)} ${args.join(" ")} failed (${ended.status}):\n${why}`);
}
