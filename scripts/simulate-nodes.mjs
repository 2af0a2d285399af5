// Runs the same seeds on this Node and on another one: `node scripts/simulate-nodes.mjs [--seeds 20]`. Their event logs
// must have the same hash. Exit 1: they differ; 3: there is no other Node, so nothing was compared.

import { execFileSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ensureBuilt, ensureInstalled } from "./bootstrap.mjs";
import { HOW_TO_GET_ONE, otherNode } from "./other-node.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({ options: { seeds: { type: "string", default: "20" } } });
ensureInstalled();
if (!ensureBuilt()) process.exit(3);
const other = otherNode();
if (!other) {
  console.error(`NOT COMPARED: there is no other Node. ${HOW_TO_GET_ONE}`);
  process.exit(3);
}

const hashes = [{ program: process.execPath, version: process.version }, other].map(
  ({ program, version }) => {
    const cli = path.join(root, "dist", "cli", "main.js");
    const args = [cli, "simulate", "--seeds", values.seeds, "--json"];
    /** @type {{ hash: string }} */
    const { hash } = JSON.parse(execFileSync(program, args, { encoding: "utf8" }));
    console.log(`${version.padEnd(10)} ${hash}`);
    return hash;
  },
);
const isSame = new Set(hashes).size === 1;
console.log(isSame ? `The same event logs of ${values.seeds} seeds.` : "THE EVENT LOGS DIFFER.");
process.exitCode = isSame ? 0 : 1;
