// Checks limits after each commit: no key has more holders than its limit, each run that counts in a limit is held or
// ready, and no window of a rate has too many claims.

import type { EventLog } from "../event-log.js";
import { LIMITS } from "../workload/jobs.js";
import { HELD, READY, type RunFacts, type Transaction } from "./run-places.js";
import type { RunHistory } from "./runs.js";

export class LimitChecker {
  readonly #log: EventLog;
  readonly #runs: RunHistory;
  /** Admitted runs, with the limit that they count in. */
  readonly #through = new Map<string, number | null>();
  readonly #held = new Map<number, Set<string>>();
  /** Runs that entered the line of a full limit. */
  readonly #waited = new Set<string>();
  readonly #limitOfRun = new Map<string, number>();
  readonly #claims = new Map<string, number[]>();
  #now = Number.NEGATIVE_INFINITY;

  constructor(log: EventLog, runs: RunHistory) {
    this.#log = log;
    this.#runs = runs;
  }

  /** Called after the run checker has seen the same transaction. */
  commit({ notes, verb, now }: Transaction, touched: ReadonlyMap<string, RunFacts>): void {
    // Windows follow the database's clock: when it steps back, a new window begins.
    if (now < this.#now) this.#claims.clear();
    this.#now = now;
    for (const [kind, first, second, third, ...rest] of notes) {
      const id = String(first);
      if (kind === "flow_run+") {
        this.#limitOfRun.set(id, Number(second));
        this.#enter(id, third === null ? null : Number(third));
      } else if (kind === "flow_run-") this.#leave(id, verb);
      else if (kind === "waiting+") this.#stand(id, rest[4], rest[6]);
      else if (kind === "waiting~") this.#stand(id, second, rest[0]);
      else if (kind === "lease+") this.#claimed(JSON.parse(String(rest[5])) as string[], now);
    }
    for (const run of touched.values()) this.#check(run);
  }

  #enter(id: string, held: number | null): void {
    this.#through.set(id, held);
    if (this.#waited.delete(id)) this.#log.saw("limit-waited");
    if (held === null) return;
    const holders = (this.#held.get(held) ?? new Set()).add(id);
    this.#held.set(held, holders);
    const limit = this.#limitOf(id);
    if (holders.size > limit)
      this.#log.violate("F", `Limit ${held} has ${holders.size} holders; its maximum is ${limit}.`);
  }

  #leave(id: string, verb: string): void {
    const held = this.#through.get(id);
    this.#through.delete(id);
    if (held == null) return;
    this.#held.get(held)?.delete(id);
    if (verb === "leases.reclaim") this.#log.saw("limit-freed-by-reclaim");
  }

  #stand(id: string, gate: unknown, flow: unknown): void {
    if (gate !== "flow") return;
    const isFull = (this.#held.get(Number(flow))?.size ?? 0) >= this.#limitOf(id);
    if (isFull) this.#waited.add(id);
  }

  #claimed(ids: readonly string[], now: number): void {
    const [first = ""] = ids;
    const job = this.#runs.runs.get(first)?.job ?? "";
    const rate = LIMITS[job]?.rate;
    if (!rate) return;
    for (const id of ids) {
      const key = `${job} ${this.#limitOfRun.get(id)}`;
      const within = (this.#claims.get(key) ?? []).filter((at) => at > now - rate.perMs);
      this.#claims.set(key, [...within, now]);
      if (within.length >= rate.limit)
        this.#log.violate("F", `More runs of ${key} began within ${rate.perMs} ms than may.`);
    }
  }

  /** Every ready or held run is admitted, and no other run counts. */
  #check(run: RunFacts): void {
    if (!LIMITS[run.job]) return;
    const isThrough = this.#through.has(run.id);
    const isReadyOrHeld = (run.places & (READY | HELD)) !== 0;
    if (isThrough !== isReadyOrHeld)
      this.#log.violate(
        "F",
        `Run ${run.id} is ${isReadyOrHeld ? "" : "not "}ready or held, and ${isThrough ? "counts" : "does not count"}.`,
      );
  }

  #limitOf(id: string): number {
    const job = this.#runs.runs.get(id)?.job ?? "";
    return LIMITS[job]?.concurrency?.limit ?? Number.POSITIVE_INFINITY;
  }
}
