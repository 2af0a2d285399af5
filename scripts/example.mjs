// Runs one of the five systems of examples/ for `npm run example NAME`, after it has prepared the clone. The example
// runs in this process, so that Ctrl-C reaches it directly. It needs only Node and npm.

import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureBuilt, ensureInstalled } from "./bootstrap.mjs";

/** The programs, relative to the repository. */
const EXAMPLES = {
  "opening-signals": "examples/opening-signals/serve.ts",
  "market-studies": "scripts/market-studies.mjs",
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

// npm and the terminal both deliver Ctrl-C. A repeat within a second is the same key press, and would end a program that
// listens only once before it has stopped gracefully. A later one ends the process at once.
let firstMs = 0;
process.on("SIGINT", () => {
  firstMs ||= performance.now();
  if (performance.now() - firstMs > 1_000) process.exit(130);
});

const file = path.join(root, found[1]);
process.argv = [process.execPath, file, ...args];
// A dynamic import, because the package does not exist before the installation.
const { register } = await import("tsx/esm/api");
register();
await import(pathToFileURL(file).href);
