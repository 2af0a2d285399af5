// The processes of the chaos. A crew ends every process that it started, and no other.

import { spawn } from "node:child_process";
import fs from "node:fs";
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import { Draw } from "./draw.mjs";

const WORKER = fileURLToPath(new URL("./worker.mjs", import.meta.url));
const FAKETIME = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
].find((file) => fs.existsSync(file));
/** How many are started with a clock that is off, and by how much at most. */
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

/** A place in the crew; one process after the other takes it. */
export class Member {
  #number;
  #orders;
  #program;
  #boots = 0;
  /** @type {import("node:child_process").ChildProcess | null} */
  #child = null;
  /** @type {Set<string>} */
  #said = new Set();
  /** What was done to the process, and so is no surprise. */
  #isKilled = false;
  #isStopped = false;
  isFrozen = false;
  /** How often it was started with a clock that is off. */
  skews = 0;
  /** @type {Promise<void>} */
  gone = Promise.resolve();
  /** @type {string[]} ends that nobody asked for */
  surprises = [];
  /** When each process was gone that did not end by itself. @type {Map<number, number>} */
  deaths = new Map();
  onChange = () => {};

  /**
   * @param {number} number
   * @param {Orders} orders
   * @param {readonly string[]} [program] what Node is started with, before the orders
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

  /** Whether it could do something now. */
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

  /** Before the program has begun, a signal would end it as it ends any process. */
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
