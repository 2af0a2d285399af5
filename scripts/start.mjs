// `npm start`: brings the clone up to date and runs the demo.
// The command line runs in this very process, so that Ctrl-C and a supervisor's signals reach it without a
// relay of ours; it tells the process that works for it.

import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureBuilt, ensureInstalled } from "./bootstrap.mjs";

/** What is started, relative to the repository; further arguments of `npm start -- …` are appended. */
const COMMAND = ["dist/cli/main.js", "dev", "examples/demo/holdfast.config.mjs"];

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
process.chdir(root);
ensureInstalled();
if (!ensureBuilt()) {
  console.error("The build failed; the messages above say where.");
  process.exit(1);
}

const [program = "", ...args] = COMMAND;
const file = path.join(root, program);
process.argv = [process.execPath, file, ...args, ...process.argv.slice(2)];
await import(pathToFileURL(file).href);
