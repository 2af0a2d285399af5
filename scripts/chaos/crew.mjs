// The processes of the chaos. A crew ends every process that it started, and no other.

import { spawn } from "node:child_process";
import fs from "node:fs";
import readline from "node:readline";
import { fileURLToPath } from "node:url";

const WORKER = fileURLToPath(new URL("./worker.mjs", import.meta.url));

/** @typedef {{ seed: number, database: string, folder: string }} Orders */

/** A place in the crew; one process after the other takes it. */
export class Member {
  #number;
  #orders;
  #boots = 0;
  /** @type {import("node:child_process").ChildProcess | null} */
  #child = null;
  /** @type {Set<string>} */
  #said = new Set();
  /** What was done to the process, and so is no surprise. */
  #isKilled = false;
  #isStopped = false;
  isFrozen = false;
  /** @type {Promise<void>} */
  gone = Promise.resolve();
  /** @type {string[]} ends that nobody asked for */
  surprises = [];

  /** @param {number} number @param {Orders} orders */
  constructor(number, orders) {
    this.#number = number;
    this.#orders = orders;
  }

  get isAlive() {
    return this.#child !== null;
  }

  get boots() {
    return this.#boots;
  }

  get name() {
    return `w${this.#number}b${this.#boots}`;
  }

  boot() {
    if (this.#child) return;
    this.#boots += 1;
    this.#isKilled = false;
    this.#isStopped = false;
    this.#said = new Set();
    const { name } = this;
    const errors = fs.openSync(`${this.#orders.folder}/errors-${name}`, "a");
    const child = spawn(process.execPath, [WORKER, JSON.stringify({ name, ...this.#orders })], {
      stdio: ["pipe", "pipe", errors],
    });
    fs.closeSync(errors);
    this.#child = child;
    child.stdin?.on("error", () => undefined);
    readline
      .createInterface({ input: /** @type {NodeJS.ReadableStream} */ (child.stdout) })
      .on("line", (line) => this.#said.add(line));
    this.gone = new Promise((resolve) => {
      child.once("error", (error) => {
        this.surprises.push(`${name} could not be started: ${error.message}`);
        this.#child = null;
        resolve();
      });
      child.once("exit", (code, signal) => {
        const isAsked = (this.#isKilled && signal === "SIGKILL") || (this.#isStopped && code === 0);
        if (!isAsked) this.surprises.push(`${name} ended with ${code ?? signal}`);
        this.#child = null;
        this.isFrozen = false;
        resolve();
      });
    });
  }

  /** @param {string} line */
  hasSaid(line) {
    return this.#said.has(line);
  }

  kill() {
    this.#isKilled = true;
    this.#child?.kill("SIGKILL");
  }

  /** Before the program has begun, a signal would end it as it ends any process. */
  get canStop() {
    return this.#child !== null && !this.#isKilled && !this.#isStopped && this.hasSaid("ready");
  }

  stop() {
    this.#isStopped = true;
    this.#child?.kill("SIGTERM");
  }

  freeze() {
    this.isFrozen = this.#child?.kill("SIGSTOP") ?? false;
  }

  thaw() {
    if (this.isFrozen) this.#child?.kill("SIGCONT");
    this.isFrozen = false;
  }

  /** No new operations. */
  quieten() {
    this.#child?.stdin?.write("quiet\n");
  }
}
