// Checks the packed package for `npm run check:runtimes`: in an empty project on Node 20, 22 and 24 and on Bun, each
// installed by npm, it runs the README's example, resolves the types for every way of importing, and measures the size
// and start-up time. It takes too long for every change; run it before a release.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { exampleOf, pack, root, run } from "./packed.mjs";

const NODES = ["20", "22", "24"];
const BUN = "bun@1.4.4";
const ATTW = "@arethetypeswrong/cli@0.18.5";
const ROUNDS = 7;

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-runtimes-"));
const project = path.join(scratch, "project");
try {
  const { tarball, paths, bytes, unpackedBytes } = pack(scratch);
  console.log(`package    ${kb(bytes)} packed, ${kb(unpackedBytes)} in ${paths.length} files`);
  run("npx", ["--yes", ATTW, tarball, "--profile", "esm-only"], scratch);
  console.log("types      resolve for Node and for bundlers");

  fs.mkdirSync(project);
  fs.writeFileSync(path.join(project, "package.json"), '{ "private": true, "type": "module" }');
  install(project, tarball);
  for (const line of sizes()) console.log(`installed  ${line}`);
  writePrograms();
  for (const { name, program } of runtimes())
    console.log(`${name.padEnd(10)} ${measured(program)}`);
} catch (error) {
  console.error(`✗ ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  fs.rmSync(scratch, { recursive: true, force: true });
}

/** The example as JavaScript, and programs that only begin. */
function writePrograms() {
  const example = exampleOf(fs.readFileSync(path.join(root, "README.md"), "utf8"));
  if (example === null) throw new Error("README.md has no example that runs.");
  fs.writeFileSync(path.join(project, "example.ts"), example);
  const strict = ["--strict", "--module", "nodenext", "--target", "es2023", "--skipLibCheck"];
  const tsc = path.join(root, "node_modules", ".bin", "tsc");
  run(
    tsc,
    [
      ...strict,
      "--types",
      "node",
      "--typeRoots",
      path.join(root, "node_modules/@types"),
      "example.ts",
    ],
    project,
  );
  // Processor time, because it is the same on a busy machine.
  const spent =
    "const { user, system } = process.cpuUsage();\nconsole.log((user + system) / 1000);\n";
  fs.writeFileSync(path.join(project, "empty.js"), spent);
  fs.writeFileSync(path.join(project, "import.js"), `import "holdfast";\n${spent}`);
  const js = fs.readFileSync(path.join(project, "example.js"), "utf8");
  fs.writeFileSync(path.join(project, "timed.js"), js + spent);
}

/** @returns {{ name: string, program: string }[]} */
function runtimes() {
  const place = `node-${process.platform}-${process.arch}`;
  const nodes = NODES.map((version) => {
    const folder = toolFolder(`node-${version}`);
    install(folder, `${place}@${version}`);
    return path.join(folder, "node_modules", place, "bin", "node");
  });
  const folder = toolFolder("bun");
  install(folder, BUN);
  const all = [...nodes, path.join(folder, "node_modules", ".bin", "bun")];
  return all.map((program) => {
    const version = run(program, ["--version"], scratch).trim();
    return {
      name: version.startsWith("v") ? `Node ${version.slice(1)}` : `Bun ${version}`,
      program,
    };
  });
}

/** @param {string} name */
function toolFolder(name) {
  const folder = path.join(scratch, name);
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, "package.json"), '{ "private": true }');
  return folder;
}

/**
 * @param {string} folder
 * @param {string} what
 */
function install(folder, what) {
  run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", what], folder);
}

/** @param {string} program */
function measured(program) {
  fs.rmSync(path.join(project, ".holdfast"), { recursive: true, force: true });
  const said = run(program, ["example.js"], project);
  if (!said.includes("completed Hello Ada, this is attempt 1.")) throw new Error(said);
  const empty = medianMs(() => run(program, ["empty.js"], project));
  const imported = medianMs(() => run(program, ["import.js"], project));
  const example = medianMs(() => run(program, ["timed.js"], project));
  return `the example runs; ${empty} ms of the processor to begin, ${imported} ms with the library, ${example} ms for the example`;
}

/** @param {() => string} work says in its last line what it spent */
function medianMs(work) {
  const times = Array.from({ length: ROUNDS }, () => Number(work().trim().split("\n").at(-1)));
  times.sort((one, other) => one - other);
  return Math.round(times[Math.floor(ROUNDS / 2)] ?? 0);
}

/** The whole, and what is largest in it. */
function sizes() {
  const modules = path.join(project, "node_modules");
  const entries = fs
    .readdirSync(modules)
    .filter((name) => !name.startsWith("."))
    .map((name) => ({ name, bytes: sizeOf(path.join(modules, name)) }))
    .sort((one, other) => other.bytes - one.bytes);
  const total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  const largest = entries.slice(0, 4).map(({ name, bytes }) => `${name} ${kb(bytes)}`);
  return [`${kb(total)} in ${entries.length} folders: ${largest.join(", ")}`];
}

/** @param {string} folder @returns {number} */
function sizeOf(folder) {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + fs.statSync(path.join(entry.parentPath, entry.name)).size, 0);
}

/** @param {number} bytes */
function kb(bytes) {
  return bytes > 1_000_000
    ? `${(bytes / 1_000_000).toFixed(1)} MB`
    : `${Math.round(bytes / 1000)} kB`;
}
