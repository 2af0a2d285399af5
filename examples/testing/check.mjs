// Runs each test file with the framework that it is written for.

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";

const here = import.meta.dirname;
const require = createRequire(import.meta.url);
const jest = path.join(path.dirname(require.resolve("jest/package.json")), "bin/jest.js");
const vitest = path.join(path.dirname(require.resolve("vitest/package.json")), "vitest.mjs");

const settings = JSON.stringify({ testMatch: ["**/*.jest.mjs"], transform: {}, rootDir: here });
run("vitest", [vitest, "run", "--root", here, "--config", "vitest.config.mjs"]);
run("jest", ["--experimental-vm-modules", jest, "--config", settings]);
run("node:test", ["--test", path.join(here, "reports.node.mjs")]);

/**
 * @param {string} name
 * @param {string[]} args
 */
function run(name, args) {
  const ended = spawnSync(process.execPath, args, { cwd: here, encoding: "utf8" });
  if (ended.status === 0) return;
  throw new Error(
    `${name} failed (${ended.status ?? ended.signal}):\n${ended.stdout}${ended.stderr}`,
  );
}
