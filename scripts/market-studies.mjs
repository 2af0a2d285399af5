// Runs the market studies of examples/ for `npm run example market-studies`, after it has prepared the clone. The command line runs in this
// process, so that Ctrl-C and a supervisor's signals reach it directly; it passes them to its worker process. The
// services around it (the markets, the worker service, a cron) are a second process, which always ends with this one.

import { spawn } from "node:child_process";
import net from "node:net";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ensureBuilt, ensureInstalled } from "./bootstrap.mjs";

/** The command, relative to the repository; further arguments are appended. */
const COMMAND = [
  "dist/cli/main.js",
  "dev",
  "examples/market-studies/holdfast.config.ts",
  // This instance does not poll: the external cron calls it.
  "--no-scheduler",
  "--no-worker",
];
const PORT = 4780;

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const asked = process.cwd();
process.chdir(root);
ensureInstalled();
if (!ensureBuilt()) {
  console.error("The build failed; the messages above say where.");
  process.exit(1);
}

// Both processes must know both ports before either of them starts.
const { env } = process;
env.HOLDFAST_PORT ||= String(await freePort(PORT));
env.HOLDFAST_PUBLIC_URL ||= `http://127.0.0.1:${env.HOLDFAST_PORT}`;
env.WORKER_PORT ||= String(await freePort(0));
env.WORKER_URL ||= `http://127.0.0.1:${env.WORKER_PORT}/`;
env.HOLDFAST_DATABASE_URL ||= `sqlite:${path.join(root, "examples/market-studies/.holdfast/studies.db")}`;
env.HOLDFAST_DATABASE_URL = env.HOLDFAST_DATABASE_URL.replace(
  /^sqlite:(?!\/|:)/,
  `sqlite:${asked}${path.sep}`,
);
env.DATABASE_URL = env.HOLDFAST_DATABASE_URL;
// Short enough that a viewer sees the recovery of a dead worker.
env.STUDY_LEASE ||= "5s";

const around = path.join(root, "examples/market-studies/demo.ts");
const child = spawn(process.execPath, ["--import", "tsx", around], {
  stdio: ["pipe", "inherit", "inherit"],
});
// Neither the child nor its pipe keeps this process alive.
child.unref();
/** @type {net.Socket} */ (child.stdin).unref();

const [program = "", ...args] = COMMAND;
const file = path.join(root, program);
process.argv = [process.execPath, file, ...args, ...process.argv.slice(2)];
await import(pathToFileURL(file).href);

/** @param {number} wanted */
function freePort(wanted) {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", (/** @type {NodeJS.ErrnoException} */ error) => {
      if (error.code === "EADDRINUSE" && wanted !== 0) resolve(freePort(0));
      else reject(error);
    });
    server.listen(wanted, "127.0.0.1", () => {
      const { port } = /** @type {net.AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}
