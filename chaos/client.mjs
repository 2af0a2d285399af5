// Runs a client that enqueues, triggers, cancels, pauses and resumes by its seed. It notes each request before sending
// it, and each response. A request without a response may or may not have taken effect.

import fs from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { LENGTHS_MS, SCHEDULES, SIGNAL } from "./jobs.mjs";
import { Draw } from "./seeded-random.mjs";

/** @typedef {import("./jobs.mjs").JobName} JobName */

const OPERATIONS = {
  ...{ enqueue: 74, keyed: 10, many: 4, trigger: 7, cancel: 4, "on-off": 1, signal: 6 },
};
/** @type {Readonly<Record<JobName, number>>} */
const ENQUEUED = {
  quick: 60,
  slow: 5,
  flaky: 12,
  doomed: 4,
  permanent: 3,
  frail: 5,
  later: 6,
  timed: 3,
  hog: 0.4,
  ledger: 20,
  journey: 10,
};
const KEYS = 300;
const DELIVERIES = 100;
/** The last acknowledged runs; the client may cancel one of them. */
const REMEMBERED = 20;

export class Client {
  #name;
  #holdfast;
  #jobs;
  #draw;
  #file;
  #count = 0;
  /** @type {string[]} */
  #recent = [];
  /** The same of journeys, which may be sent a signal.
   * @type {string[]} */
  #journeys = [];
  #isStopping = false;
  /** @type {Promise<void> | null} */
  #working = null;

  /**
   * @param {{ name: string, seed: number, holdfast: any, jobs: Record<string, any>, file: string }} params
   */
  constructor({ name, seed, holdfast, jobs, file }) {
    this.#name = name;
    this.#holdfast = holdfast;
    this.#jobs = jobs;
    this.#draw = new Draw(`client ${name} ${seed}`);
    this.#file = file;
  }

  start() {
    this.#working ??= this.#work();
  }

  async stop() {
    this.#isStopping = true;
    await this.#working;
  }

  async #work() {
    while (!this.#isStopping) {
      await this.#one();
      await pause(this.#draw.int(0, 80));
    }
  }

  async #one() {
    const draw = this.#draw;
    const op = `${this.#name}-${this.#count++}`;
    switch (draw.weighted(OPERATIONS)) {
      case "enqueue":
        return this.#enqueue(op);
      case "keyed":
        return this.#keyed(op);
      case "many":
        return this.#many(op);
      case "trigger":
        return this.#trigger(op);
      case "cancel": {
        const run = this.#recent[draw.int(0, this.#recent.length - 1)];
        if (run === undefined) return;
        return this.#ask({ op, verb: "cancel", run }, () => this.#holdfast.runs.cancel(run));
      }
      case "signal": {
        const key = this.#journeys[draw.int(0, this.#journeys.length - 1)];
        if (key === undefined) return;
        return this.#ask({ op, verb: "signal", key }, () =>
          this.#holdfast.signal(SIGNAL, { key, value: op }),
        );
      }
      case "on-off": {
        const verb = draw.isTrue(0.5) ? "pause" : "resume";
        const ask = async () => void (await this.#holdfast.schedules[verb]("on-off"));
        return this.#ask({ op, verb }, ask);
      }
    }
  }

  async #enqueue(/** @type {string} */ op) {
    const draw = this.#draw;
    const job = draw.weighted(ENQUEUED);
    const isStubborn = draw.isTrue(0.5);
    const options = {
      ...(draw.isTrue(0.25) ? { delay: `${draw.int(1, 3_000)}ms` } : {}),
      ...(draw.isTrue(0.1) ? { priority: draw.int(-2, 2) } : {}),
    };
    const input = { op, ms: LENGTHS_MS[job], isStubborn };
    const answer = await this.#ask({ op, verb: "enqueue", job }, () =>
      this.#jobs[job].enqueue(input, options),
    );
    if (!answer) return;
    this.#recent = [answer.id, ...this.#recent].slice(0, REMEMBERED);
    if (job === "journey") this.#journeys = [answer.id, ...this.#journeys].slice(0, REMEMBERED);
  }

  /** Few keys for many callers; sometimes with another input, which is a conflict. */
  async #keyed(/** @type {string} */ op) {
    const draw = this.#draw;
    const key = `key-${draw.int(1, KEYS)}`;
    const variant = draw.isTrue(0.1) ? 1 : 0;
    const job = draw.isTrue(0.8) ? "quick" : "slow";
    await this.#ask({ op, verb: "keyed", job, key, variant }, () =>
      this.#jobs[job].enqueue({ key, variant }, { key }),
    );
  }

  /** Usually a few runs, sometimes many; over HTTP only one at a time. */
  async #many(/** @type {string} */ op) {
    if (!this.#jobs.quick.enqueueMany) return this.#enqueue(op);
    const count = this.#draw.isTrue(0.5) ? this.#draw.int(2, 12) : this.#draw.int(100, 700);
    const inputs = Array.from({ length: count }, () => ({ op, ms: LENGTHS_MS.quick }));
    await this.#ask({ op, verb: "many", job: "quick", count }, () =>
      this.#jobs.quick.enqueueMany(inputs),
    );
  }

  async #trigger(/** @type {string} */ op) {
    const draw = this.#draw;
    const names = Object.keys(SCHEDULES);
    const schedule = names[draw.int(0, names.length - 1)] ?? "range";
    const delivery = draw.isTrue(0.5) ? `delivery-${draw.int(1, DELIVERIES)}` : null;
    const isIfDue = delivery === null && draw.isTrue(0.2);
    await this.#ask({ op, verb: "trigger", schedule, delivery, isIfDue }, () =>
      this.#holdfast.schedules.trigger(schedule, {
        ...(delivery === null ? {} : { deliveryId: delivery }),
        ...(isIfDue ? { ifDue: true } : {}),
      }),
    );
  }

  /**
   * @param {Record<string, unknown>} question
   * @param {() => Promise<any>} ask
   */
  async #ask(question, ask) {
    this.#note({ ...question, is: "asked" });
    try {
      const answer = await ask();
      this.#note({ op: question.op, is: "answered", answer: answer ?? null });
      return answer;
    } catch (error) {
      const { code: said, message, runId, isUnknown } = /** @type {any} */ (error);
      const isAnswered = said !== "NO_ANSWER";
      const code = isAnswered ? said : isUnknown ? "OUTCOME_UNKNOWN" : "STORE_UNAVAILABLE";
      this.#note({ op: question.op, is: "refused", code, message, runId });
      return null;
    }
  }

  #note(/** @type {object} */ line) {
    fs.appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}
