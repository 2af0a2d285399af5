// The parent's side of a measurement: starts a contestant in a process of its own and talks to it.
// Every wait has an end; a process that does not answer is killed and its measurement counts as failed.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const CHILD = fileURLToPath(new URL("child.mjs", import.meta.url));
const ANSWER_MS_MAX = 15 * 60_000;
const alive = new Set();

/** Starts one process for a contestant and resolves when it has loaded its code. */
export async function startProcess(contestant) {
  const child = fork(CHILD, [contestant.name], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
  alive.add(child);
  const calls = new Map();
  let callCount = 0;
  let lastWords = "";
  let handled = 0;
  let onProgress = () => {};
  let settleReady;
  const ready = new Promise((resolve, reject) => (settleReady = { resolve, reject }));

  child.stderr.on("data", (chunk) => (lastWords = (lastWords + chunk).slice(-2000)));
  child.on("message", (message) => {
    if (message.ready) settleReady.resolve();
    else if (message.handled !== undefined) {
      handled = message.handled;
      onProgress();
    } else {
      const call = calls.get(message.id);
      calls.delete(message.id);
      if (message.error) call.reject(new Error(`${contestant.name}: ${message.error}`));
      else call.resolve(message.value);
    }
  });
  child.on("exit", (code, signal) => {
    alive.delete(child);
    const error = new Error(`${contestant.name} ended with ${code ?? signal}. ${lastWords.trim()}`);
    settleReady.reject(error);
    for (const call of calls.values()) call.reject(error);
  });

  /** Asks the child to do something; see `actions` in child.mjs. */
  const ask = (action, params) =>
    new Promise((resolve, reject) => {
      const id = ++callCount;
      const timer = setTimeout(() => {
        child.kill("SIGKILL");
        reject(
          new Error(
            `${contestant.name} did not answer \`${action}\` within ${ANSWER_MS_MAX / 1000} s.`,
          ),
        );
      }, ANSWER_MS_MAX);
      const finish = (settle) => (value) => {
        clearTimeout(timer);
        settle(value);
      };
      calls.set(id, { resolve: finish(resolve), reject: finish(reject) });
      child.send({ id, action, params });
    });

  await ready;
  return {
    ask,
    get handled() {
      return handled;
    },
    set onProgress(listener) {
      onProgress = listener;
    },
    kill: (signal = "SIGKILL") => child.kill(signal),
    /** Ends the process; what it has open dies with it. */
    async end() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** Runs `body` with processes that are gone when it ends, however it ends. */
export async function withProcesses(contestant, count, body) {
  const processes = [];
  try {
    for (let index = 0; index < count; index++) processes.push(await startProcess(contestant));
    return await body(...processes);
  } finally {
    await Promise.all(processes.map((one) => one.end()));
  }
}

/** Resolves when the processes together have handled `count` runs. */
export function untilHandled(processes, count) {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => {
      const got = processes.reduce((sum, one) => sum + one.handled, 0);
      reject(
        new Error(`Only ${got} of ${count} runs were handled within ${ANSWER_MS_MAX / 1000} s.`),
      );
    }, ANSWER_MS_MAX);
    const look = () => {
      if (processes.reduce((sum, one) => sum + one.handled, 0) < count) return;
      clearTimeout(limit);
      resolve();
    };
    for (const one of processes) one.onProgress = look;
    look();
  });
}

/** For the end of the program: no child outlives it. */
export function killAll() {
  for (const child of alive) child.kill("SIGKILL");
}
