// Shows a dashboard with a day of work for `npm start`: prepares the clone, plays 24 hours of examples/demo in virtual
// time, and then runs that shop live. The command line runs in this process, so that Ctrl-C and a supervisor's signals reach
// it directly. A second start goes on with the database of the first. `npm start -- --port 5000` passes options of
// `holdfast dev`.

import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureBuilt, ensureInstalled } from "./bootstrap.mjs";

/** An older day would mostly be a gap. */
const FRESH_MS = 3_600_000;

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
process.chdir(root);
ensureInstalled();
if (!ensureBuilt()) {
  console.error("The build failed; the messages above say where.");
  process.exit(1);
}

const folder = path.resolve(
  process.env.HOLDFAST_DEMO_FOLDER ?? path.join(root, ".holdfast", "demo"),
);
const database = path.join(folder, "demo.db");
const wantsHelp = process.argv.some((arg) => arg === "--help" || arg === "-h");
if (!wantsHelp && !isFresh()) await play();

process.env.HOLDFAST_DATABASE_URL = `sqlite:${database}`;
process.env.NODE_NO_WARNINGS ??= "1";
const args = ["dev", path.join(root, "examples/demo/holdfast.config.ts"), "--no-reload"];
const file = path.join(root, "dist/cli/main.js");
process.argv = [process.execPath, file, ...args, ...process.argv.slice(2)];
explainOnceListening();
await import(pathToFileURL(file).href);

function isFresh() {
  const youngest = [database, `${database}-wal`].map(
    (name) => fs.statSync(name, { throwIfNoEntry: false })?.mtimeMs ?? 0,
  );
  return Date.now() - Math.max(...youngest) < FRESH_MS;
}

async function play() {
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const { register } = await import("tsx/esm/api");
  const unregister = register();
  const { playDay } = await import(pathToFileURL(path.join(root, "examples/demo/play.ts")).href);
  const draft = `${database}.new`;
  await playDay(draft, (/** @type {number} */ done) => {
    const bar = `${"█".repeat(done)}${"░".repeat(24 - done)}`;
    const line = `Playing the last 24 hours of a shop in virtual time … ${bar} ${done} of 24 h`;
    if (process.stdout.isTTY) process.stdout.write(`\r${line}${done === 24 ? "\n" : ""}`);
    else if (done % 6 === 0) console.log(line);
  });
  await unregister();
  // Only a whole day gets the name that a later start looks for.
  fs.renameSync(draft, database);
}

/** Says where to look and what to try, after the command line has said that it listens. */
function explainOnceListening() {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = /** @type {typeof write} */ (
    (/** @type {string | Uint8Array} */ chunk, /** @type {any[]} */ ...rest) => {
      const isDone = write(chunk, ...rest);
      const [, url] = /^Listening on (\S+)/m.exec(String(chunk)) ?? [];
      if (url === undefined) return isDone;
      process.stdout.write = write;
      return write(
        `The demo goes on live: open ${url}, click a red, violet or hollow tick to see why, or a schedule to run it now. Ctrl-C ends it.\n`,
      );
    }
  );
}
