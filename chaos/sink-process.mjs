// Starts the sink's process, and starts it again on the same port whenever it was killed.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { freePort } from "../scripts/postgres.mjs";

const SINK = fileURLToPath(new URL("./sink.mjs", import.meta.url));

export class SinkPlace {
  #file;
  #isClosed = false;
  /** @type {import("node:child_process").ChildProcess | null} */
  #child = null;
  port = 0;
  kills = 0;

  /** @param {string} file */
  constructor(file) {
    this.#file = file;
  }

  async open() {
    this.port = await freePort();
    this.#start();
    return this;
  }

  /** @returns {boolean} whether there was a process to kill */
  kill() {
    if (!this.#child?.kill("SIGKILL")) return false;
    this.kills += 1;
    return true;
  }

  close() {
    this.#isClosed = true;
    this.#child?.kill("SIGKILL");
  }

  #start() {
    const child = spawn(process.execPath, [SINK, this.#file, String(this.port)], {
      stdio: ["pipe", "ignore", "inherit"],
    });
    child.stdin?.on("error", () => undefined);
    this.#child = child;
    child.once("exit", () => {
      this.#child = null;
      if (!this.#isClosed) this.#start();
    });
  }
}
