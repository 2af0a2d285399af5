// `npm run example NAME`: brings the clone up to date and runs one of the five systems of examples/, in this very
// process, so that Ctrl-C reaches it without a relay. Needs nothing but Node and npm.

import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureBuilt, ensureInstalled } from "./bootstrap.mjs";

/** What is run, relative to the repository. */
const EXAMPLES = {
  "opening-signals": "examples/opening-signals/serve.ts",
  "market-studies": "scripts/start.mjs",
  "camera-snapshots": "examples/camera-snapshots/three.ts",
  "report-schedules": "examples/report-schedules/service.ts",
  reconciliation: "examples/reconciliation/server.ts",
};

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const [name = "", ...args] = process.argv.slice(2);
const found = Object.entries(EXAMPLES).find(([known]) => known === name);
if (!found) {
  console.error(
    `${name === "" ? "Which example?" : `There is no example ${name} to run.`} These are:`,
  );
  for (const known of Object.keys(EXAMPLES)) console.error(`  npm run example ${known}`);
  process.exit(2);
}
ensureInstalled();
if (!ensureBuilt()) {
  console.error("The build failed; the messages above say where.");
  process.exit(1);
}

// npm and the terminal both deliver Ctrl-C: a repeat within a second is the same one, and would end what
// listens once before it has stopped in good order. A later one leaves at once.
let firstMs = 0;
process.on("SIGINT", () => {
  firstMs ||= performance.now();
  if (performance.now() - firstMs > 1_000) process.exit(130);
});

const file = path.join(root, found[1]);
process.argv = [process.execPath, file, ...args];
// By name, because it is not there before the installation.
const { register } = await import("tsx/esm/api");
register();
await import(pathToFileURL(file).href);
