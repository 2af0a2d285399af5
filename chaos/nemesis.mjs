// Does to the processes what the plan says, and counts what was truly done.

import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { Draw } from "./draw.mjs";
import { LEASE_MIN_MS } from "./plan.mjs";
import { busyOn, catchBusy, stopNow } from "./processes.mjs";

/** @typedef {import("./crew.mjs").Member} Member */
/** @typedef {import("./plan.mjs").Fault} Fault */
/** @typedef {(fault: Fault) => Promise<boolean>} Doer whether there was somebody to whom it could be done */

/** How long somebody is waited for who is inside of a write, or of a checkpoint. */
const CATCH_WITHIN_MS = { write: 400, checkpoint: 3_000 };

export class Nemesis {
  #crew;
  #timeline;
  #sink;
  #file;
  #doers;
  #isOver = false;
  /** What ends by itself a little later: thaws and boots. @type {Promise<unknown>[]} */
  pending = [];
  /** @type {Record<string, number>} */
  counts = {
    kills: 0,
    killsInWrite: 0,
    killsAtCheckpoint: 0,
    freezes: 0,
    longFreezes: 0,
    freezesInWrite: 0,
    stops: 0,
    hogs: 0,
    sinkKills: 0,
    passed: 0,
  };

  /**
   * @param {{ crew: Member[], timeline: import("./timeline.mjs").Timeline,
   *   sink: import("./sink-place.mjs").SinkPlace, file: string | null,
   *   more: (nemesis: Nemesis) => Partial<Record<string, Doer>> }} params
   *   file: of SQLite; more: what can be done to this database
   */
  constructor({ crew, timeline, sink, file, more }) {
    this.#crew = crew;
    this.#timeline = timeline;
    this.#sink = sink;
    this.#file = file;
    this.#doers = /** @type {Record<string, Doer>} */ ({
      kill: (fault) => this.#harm(fault),
      freeze: (fault) => this.#harm(fault),
      stop: (fault) => this.#harm(fault),
      hog: async ({ forMs }) => this.#hog(forMs),
      "kill-sink": async () => this.#count("sinkKills", Number(this.#sink.kill())),
      "kill-in-write": (fault) => this.#killBusy(fault, "write"),
      "kill-at-checkpoint": (fault) => this.#killBusy(fault, "checkpoint"),
      ...more(this),
    });
  }

  get isOver() {
    return this.#isOver;
  }

  /** @param {Fault[]} plan @param {number} forMs */
  async run(plan, forMs) {
    const startedAt = performance.now();
    for (const fault of plan) {
      await pause(Math.max(0, startedAt + fault.atMs - performance.now()));
      if (performance.now() - startedAt > forMs) break;
      if (!(await this.#doers[fault.kind]?.(fault))) this.#count("passed");
    }
    await pause(Math.max(0, startedAt + forMs - performance.now()));
  }

  /** Whatever still lasts ends now. */
  async end() {
    this.#isOver = true;
    await Promise.all(this.pending.splice(0));
  }

  /** @param {string} what @param {number} [by] */
  #count(what, by = 1) {
    this.counts[what] = (this.counts[what] ?? 0) + by;
    return by > 0;
  }

  /** @param {string} what @param {number} [by] */
  count(what, by = 1) {
    return this.#count(what, by);
  }

  /** @param {number} ms */
  async lasting(ms) {
    const until = performance.now() + ms;
    while (!this.#isOver && performance.now() < until)
      await pause(Math.min(50, Math.max(1, until - performance.now())));
  }

  /** @param {Fault} fault */
  async #harm({ kind, victim, forMs, isForAll }) {
    // Mostly those who work: on a busy machine a process takes long to begin, and would never get there.
    const isAnyState = victim % 10 === 0;
    const able = this.#crew.filter((member) => {
      if (kind === "stop") return member.canStop && !member.isFrozen;
      if (!member.isAlive || (kind === "freeze" && member.isFrozen)) return false;
      return isAnyState || member.hasSaid("ready");
    });
    const first = victim % Math.max(1, able.length);
    const victims = isForAll ? able : able.slice(first, first + 1);
    for (const each of victims) {
      if (kind === "freeze") this.#freeze(each, forMs);
      else this.#end(each, kind === "kill", forMs);
    }
    return victims.length > 0;
  }

  /** @param {Member} victim @param {boolean} isKill @param {number} awayMs */
  #end(victim, isKill, awayMs) {
    if (isKill) this.#kill(victim);
    else {
      victim.stop();
      this.#count("stops");
    }
    this.pending.push(victim.gone.then(() => this.#bootLater(victim, awayMs)));
  }

  /** Where it can be known, it is stopped first: what it was at is then certain. @param {Member} victim */
  #kill(victim) {
    const { pid } = victim;
    if (this.#file !== null) {
      if (!victim.isFrozen) stopNow(pid);
      const doing = busyOn(this.#file).get(pid);
      if (doing?.has("write")) this.#count("killsInWrite");
      if (doing?.has("checkpoint")) this.#count("killsAtCheckpoint");
    }
    victim.kill();
    this.#count("kills");
  }

  /** @param {Member} victim @param {number} forMs */
  #freeze(victim, forMs) {
    victim.freeze();
    this.#count("freezes");
    if (forMs > LEASE_MIN_MS) this.#count("longFreezes");
    let heal = () => {};
    // Nobody can write while it holds the file; that is SQLite's way, and no takeover is due before.
    if (this.#file !== null) {
      stopNow(victim.pid);
      if (busyOn(this.#file).get(victim.pid)?.has("write")) {
        this.#count("freezesInWrite");
        heal = this.#timeline.trouble("frozen in a write");
      }
    }
    this.pending.push(this.#thawLater(victim, forMs).then(heal));
  }

  /** @param {Fault} fault @param {import("./processes.mjs").Doing} doing */
  async #killBusy({ forMs }, doing) {
    if (this.#file === null) return false;
    const able = this.#crew.filter((member) => member.isAlive && !member.isFrozen);
    const withinMs = CATCH_WITHIN_MS[doing];
    const pids = able.map(({ pid }) => pid);
    const pid = await catchBusy({ file: this.#file, doing, pids, withinMs });
    const victim = able.find((member) => member.pid === pid);
    if (!victim) return false;
    this.#end(victim, true, forMs);
    return true;
  }

  #hog(/** @type {number} */ forMs) {
    const child = spawn(
      process.execPath,
      [
        "-e",
        `setTimeout(()=>process.exit(),${forMs}); for(let until=Date.now()+${forMs};Date.now()<until;);`,
      ],
      { stdio: "ignore" },
    );
    this.pending.push(new Promise((resolve) => child.once("exit", resolve)));
    return this.#count("hogs");
  }

  /** @param {Member} member @param {number} afterMs */
  async #bootLater(member, afterMs) {
    await this.lasting(afterMs);
    if (!this.#isOver) member.boot();
  }

  /** @param {Member} member @param {number} afterMs */
  async #thawLater(member, afterMs) {
    const { boots } = member;
    await this.lasting(afterMs);
    if (member.boots === boots) member.thaw();
  }
}

/** @param {number} seed */
export function chanceOf(seed) {
  const draw = new Draw(`nemesis ${seed}`);
  return () => draw.next();
}
