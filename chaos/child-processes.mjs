// Starts, signals and restarts the child processes of a round. It ends every process that it started, and no other.

import { spawn } from "node:child_process";
import fs from "node:fs";
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import { Draw } from "./seeded-random.mjs";

const WORKER = fileURLToPath(new URL("./worker.mjs", import.meta.url));
const FAKETIME = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
].find((file) => fs.existsSync(file));
/** The share of processes that start with a wrong clock, and the largest error. */
const SKEWED = 0.25;
const SKEW_MAX_S = 600;

/**
 * @typedef {object} Orders
 * @property {number} seed
 * @property {string} database
 * @property {string} folder
 * @property {import("./plan.mjs").Role | "asker"} role
 * @property {number} sinkPort
 * @property {number} [httpPort]
 * @property {boolean} mayBeSkewed
 * @property {boolean} [isRecorded]
 */

/** One member of the round. When its process ends, the next process takes its place. */
export class Member {
  #number;
  #orders;
  #program;
  #boots = 0;
  /** @type {import("node:child_process").ChildProcess | null} */
  #child = null;
  /** @type {Set<string>} */
  #said = new Set();
  /** The faults that hit the process: they explain its end. */
  #isKilled = false;
  #isStopped = false;
  isFrozen = false;
  /** How often it was started with a wrong clock. */
  skews = 0;
  /** @type {Promise<void>} */
  gone = Promise.resolve();
  /** @type {string[]} unexpected exits */
  surprises = [];
  /** The time of death of each process that did not end by itself. @type {Map<number, number>} */
  deaths = new Map();
  onChange = () => {};

  /**
   * @param {number} number
   * @param {Orders} orders
   * @param {readonly string[]} [program] arguments of Node before the orders
   */
  constructor(number, orders, program = [WORKER]) {
    this.#number = number;
    this.#orders = orders;
    this.#program = program;
  }

  get role() {
    return this.#orders.role;
  }

  get isAlive() {
    return this.#child !== null;
  }

  get pid() {
    return this.#child?.pid ?? 0;
  }

  /** Whether it could work now. */
  get isAble() {
    return (
      this.#child !== null &&
      !this.#isKilled &&
      !this.#isStopped &&
      !this.isFrozen &&
      this.hasSaid("ready")
    );
  }

  get boots() {
    return this.#boots;
  }

  get name() {
    return `${this.role[0]}${this.#number}b${this.#boots}`;
  }

  boot() {
    if (this.#child) return;
    this.#boots += 1;
    this.#isKilled = false;
    this.#isStopped = false;
    this.#said = new Set();
    const { name } = this;
    const errors = fs.openSync(`${this.#orders.folder}/errors-${name}`, "a");
    const { skewMs, environment } = this.#skew(name);
    const orders = JSON.stringify({ name, skewMs, ...this.#orders });
    const child = spawn(process.execPath, [...this.#program, orders], {
      stdio: ["pipe", "pipe", errors],
      env: { ...process.env, ...environment },
    });
    fs.closeSync(errors);
    this.#child = child;
    child.stdin?.on("error", () => undefined);
    readline
      .createInterface({ input: /** @type {NodeJS.ReadableStream} */ (child.stdout) })
      .on("line", (line) => {
        if (this.#child !== child) return;
        this.#said.add(line);
        this.onChange();
      });
    this.gone = new Promise((resolve) => {
      const leave = () => {
        this.#child = null;
        this.isFrozen = false;
        this.onChange();
        resolve();
      };
      child.once("error", (error) => {
        this.surprises.push(`${name} could not be started: ${error.message}`);
        leave();
      });
      child.once("exit", (code, signal) => {
        const isAsked = (this.#isKilled && signal === "SIGKILL") || (this.#isStopped && code === 0);
        if (!isAsked) this.surprises.push(`${name} ended with ${code ?? signal}`);
        leave();
      });
    });
  }

  /** @param {string} name */
  #skew(name) {
    const draw = new Draw(`skew ${this.#orders.seed} ${name}`);
    if (!this.#orders.mayBeSkewed || FAKETIME === undefined || !draw.isTrue(SKEWED))
      return { skewMs: 0, environment: {} };
    this.skews += 1;
    const seconds = draw.int(1, SKEW_MAX_S) * (draw.isTrue(0.5) ? 1 : -1);
    const environment = {
      LD_PRELOAD: FAKETIME,
      FAKETIME: `${seconds > 0 ? "+" : "-"}${Math.abs(seconds)}`,
      DONT_FAKE_MONOTONIC: "1",
    };
    return { skewMs: seconds * 1_000, environment };
  }

  /** @param {string} line */
  hasSaid(line) {
    return this.#said.has(line);
  }

  kill() {
    this.#isKilled = true;
    if (this.pid > 0) this.deaths.set(this.pid, Date.now());
    this.#child?.kill("SIGKILL");
    this.onChange();
  }

  /** Before the program installs its handlers, a signal would end it as it ends any process. */
  get canStop() {
    return this.#child !== null && !this.#isKilled && !this.#isStopped && this.hasSaid("ready");
  }

  stop() {
    this.#isStopped = true;
    this.#child?.kill("SIGTERM");
    this.onChange();
  }

  freeze() {
    this.isFrozen = this.#child?.kill("SIGSTOP") ?? false;
    this.onChange();
  }

  thaw() {
    if (this.isFrozen) this.#child?.kill("SIGCONT");
    this.isFrozen = false;
    this.onChange();
  }

  /** An order on its standard input: "quiet", "full" or "room". @param {string} order */
  tell(order) {
    this.#child?.stdin?.write(`${order}\n`);
  }
}
