// Runs commands of the built program one after the other in one process, for terminal.ts: starting Node and loading the
// program takes most of a short command's time. Each command gets its arguments, its variables and its output streams as
// if it had a process of its own.

import { register } from "node:module";
import { pathToFileURL } from "node:url";

/** @typedef {{ readonly args: readonly string[], readonly env: Readonly<Record<string, string>> }} Command */

const [, , program = ""] = process.argv;
// A process loads a configuration file once; each command must load it anew.
const LOAD_ANEW = `
let loads = 0;
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  const isOfUser = found.url.startsWith(${JSON.stringify(pathToFileURL(process.cwd()).href)});
  return isOfUser ? { ...found, url: found.url + "?load=" + ++loads } : found;
}`;
register(`data:text/javascript,${encodeURIComponent(LOAD_ANEW)}`);

const write = {
  stdout: process.stdout.write.bind(process.stdout),
  stderr: process.stderr.write.bind(process.stderr),
};
const EVENTS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "exit", "warning"];
let count = 0;

process.on("message", async (/** @type {Command} */ command) => {
  const ended = await runCommand(command);
  process.send?.(ended);
});

/** @param {Command} command */
async function runCommand({ args, env }) {
  const output = { stdout: "", stderr: "" };
  const listeners = EVENTS.map((event) => new Set(process.listeners(/** @type {any} */ (event))));
  for (const name of /** @type {const} */ (["stdout", "stderr"]))
    process[name].write = /** @type {any} */ (capture(output, name));
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  process.argv = [process.execPath, program, ...args];
  process.exitCode = undefined;
  const code = await new Promise((resolve, reject) => {
    process.exit = /** @type {any} */ ((/** @type {number} */ code) => resolve(code));
    count += 1;
    import(`${pathToFileURL(program).href}?command=${count}`).catch(reject);
  });
  EVENTS.forEach((event, at) => {
    for (const listener of process.listeners(/** @type {any} */ (event)))
      if (!listeners[at]?.has(listener)) process.off(event, listener);
  });
  for (const name of /** @type {const} */ (["stdout", "stderr"])) {
    process[name].removeAllListeners("error");
    process[name].write = /** @type {any} */ (write[name]);
  }
  return { code, ...output };
}

/**
 * @param {{ stdout: string, stderr: string }} output
 * @param {"stdout" | "stderr"} name
 */
function capture(output, name) {
  /** @param {string | Uint8Array} chunk @param {unknown[]} rest */
  return (chunk, ...rest) => {
    output[name] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
    const done = rest.at(-1);
    if (typeof done === "function") queueMicrotask(() => done());
    return true;
  };
}
