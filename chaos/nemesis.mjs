// Applies the planned faults to the processes, and counts the faults that had an effect.

import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { LEASE_MIN_MS } from "./plan.mjs";
import { busyOn, catchBusy, stopNow } from "./process-state.mjs";
import { Draw } from "./seeded-random.mjs";

/** @typedef {import("./child-processes.mjs").Member} Member */
/** @typedef {import("./plan.mjs").Fault} Fault */
/** @typedef {(fault: Fault) => Promise<boolean>} Doer resolves to whether it found a victim */

/** How long to wait for a process that is inside a write or a checkpoint. */
const CATCH_WITHIN_MS = { write: 400, checkpoint: 3_000 };

export class Nemesis {
  #members;
  #timeline;
  #sink;
  #file;
  #doers;
  #isOver = false;
  /** Thaws and boots that end by themselves a little later. @type {Promise<unknown>[]} */
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
   * @param {{ members: Member[], timeline: import("./timeline.mjs").Timeline,
   *   sink: import("./sink-process.mjs").SinkPlace, file: string | null,
   *   more: (nemesis: Nemesis) => Partial<Record<string, Doer>> }} params
   *   file: of SQLite; more: the faults of this database
   */
  constructor({ members, timeline, sink, file, more }) {
    this.#members = members;
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

  /** Ends all faults that still last. */
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
    // Usually a process that works: on a busy machine a process starts slowly, and would otherwise never get to work.
    const isAnyState = victim % 10 === 0;
    const able = this.#members.filter((member) => {
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

  /** Stops the victim first where the system reports its state: its state is then certain. @param {Member} victim */
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
    // No process can write while the victim holds the lock of the SQLite file, so no takeover is due before.
    if (this.#file !== null) {
      stopNow(victim.pid);
      if (busyOn(this.#file).get(victim.pid)?.has("write")) {
        this.#count("freezesInWrite");
        heal = this.#timeline.trouble("frozen in a write");
      }
    }
    this.pending.push(this.#thawLater(victim, forMs).then(heal));
  }

  /** @param {Fault} fault @param {import("./process-state.mjs").Doing} doing */
  async #killBusy({ forMs }, doing) {
    if (this.#file === null) return false;
    const able = this.#members.filter((member) => member.isAlive && !member.isFrozen);
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
