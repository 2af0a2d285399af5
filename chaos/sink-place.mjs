// The sink's place: its process, started again whenever it was killed, always on the same port.

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

  /** @returns {boolean} whether it was there to be killed */
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
