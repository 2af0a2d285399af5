// Limits as the committed transactions left them: no key has more holders than its limit at any commit,
// who counts in a limit is held or ready, and no window of a rate has one claim too many.

import type { EventLog } from "../event-log.js";
import { LIMITS } from "../workload/jobs.js";
import { HELD, READY, type RunFacts, type Transaction } from "./run-places.js";
import type { RunHistory } from "./runs.js";

export class LimitChecker {
  readonly #chronicle: EventLog;
  readonly #runs: RunHistory;
  /** Runs that were let through, with the flow that they count in. */
  readonly #through = new Map<string, number | null>();
  readonly #held = new Map<number, Set<string>>();
  /** Runs that came to stand in a line whose flow was full. */
  readonly #waited = new Set<string>();
  readonly #flowOf = new Map<string, number>();
  readonly #claims = new Map<string, number[]>();
  #now = Number.NEGATIVE_INFINITY;

  constructor(chronicle: EventLog, runs: RunHistory) {
    this.#chronicle = chronicle;
    this.#runs = runs;
  }

  /** After the runs have taken in the same transaction. */
  commit({ notes, verb, now }: Transaction, touched: ReadonlyMap<string, RunFacts>): void {
    // A window is one of the database's clock: where that steps back, another one begins.
    if (now < this.#now) this.#claims.clear();
    this.#now = now;
    for (const [kind, first, second, third, ...rest] of notes) {
      const id = String(first);
      if (kind === "flow_run+") {
        this.#flowOf.set(id, Number(second));
        this.#enter(id, third === null ? null : Number(third));
      } else if (kind === "flow_run-") this.#leave(id, verb);
      else if (kind === "waiting+") this.#stand(id, rest[4], rest[6]);
      else if (kind === "waiting~") this.#stand(id, second, rest[0]);
      else if (kind === "lease+") this.#claimed(JSON.parse(String(rest[5])) as string[], now);
    }
    for (const run of touched.values()) this.#judge(run);
  }

  #enter(id: string, held: number | null): void {
    this.#through.set(id, held);
    if (this.#waited.delete(id)) this.#chronicle.saw("limit-waited");
    if (held === null) return;
    const holders = (this.#held.get(held) ?? new Set()).add(id);
    this.#held.set(held, holders);
    const limit = this.#limitOf(id);
    if (holders.size > limit)
      this.#chronicle.violate(
        "F",
        `Flow ${held} has ${holders.size} holders; its limit is ${limit}.`,
      );
  }

  #leave(id: string, verb: string): void {
    const held = this.#through.get(id);
    this.#through.delete(id);
    if (held == null) return;
    this.#held.get(held)?.delete(id);
    if (verb === "reclaim") this.#chronicle.saw("limit-freed-by-reclaim");
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
      const key = `${job} ${this.#flowOf.get(id)}`;
      const within = (this.#claims.get(key) ?? []).filter((at) => at > now - rate.perMs);
      this.#claims.set(key, [...within, now]);
      if (within.length >= rate.limit)
        this.#chronicle.violate("F", `More runs of ${key} began within ${rate.perMs} ms than may.`);
    }
  }

  /** Whoever is ready or held has been let through, and nobody else counts. */
  #judge(run: RunFacts): void {
    if (!LIMITS[run.job]) return;
    const isThrough = this.#through.has(run.id);
    const isReadyOrHeld = (run.places & (READY | HELD)) !== 0;
    if (isThrough !== isReadyOrHeld)
      this.#chronicle.violate(
        "F",
        `Run ${run.id} is ${isReadyOrHeld ? "" : "not "}ready or held, and ${isThrough ? "counts" : "does not count"}.`,
      );
  }

  #limitOf(id: string): number {
    const job = this.#runs.runs.get(id)?.job ?? "";
    return LIMITS[job]?.concurrency?.limit ?? Number.POSITIVE_INFINITY;
  }
}
