// Runs the example twice on one database: the key makes both calls the same run.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";

const example = path.join(import.meta.dirname, "main.ts");
const program = path.join(import.meta.dirname, "../../node_modules/.bin/tsx");
for (const round of [1, 2]) {
  const said = execFileSync(program, [example], { encoding: "utf8" });
  if (said !== "completed Hello Ada, this is attempt 1.\n") {
    throw new Error(`Round ${round} said: ${said}`);
  }
}

const readme = readFileSync(path.join(import.meta.dirname, "../../README.md"), "utf8");
const shown = readFileSync(example, "utf8").split("\n").slice(2).join("\n");
if (!readme.includes(shown)) throw new Error("README.md shows another program than main.ts.");
