// Compares the responses of store calls with the tables (S3), and counts responses, and lost responses, that are rare
// states of their own.

import type { ExchangeParams, ExchangeResult, Grant } from "../../../store/claims.js";
import type { ProgressParams, ProgressResult } from "../../../store/progress.js";
import type { Suspended } from "../../../store/steps.js";
import type { EventLog } from "../event-log.js";
import type { SimulatedProcess } from "../fleet/process.js";
import type { Checkers } from "./checkers.js";

type Call = { readonly verb: string; readonly params: unknown };

export class ResponseChecker {
  readonly #log: EventLog;
  readonly #checkers: Checkers;

  constructor(log: EventLog, checkers: Checkers) {
    this.#log = log;
    this.#checkers = checkers;
  }

  /** A response reached its caller. */
  answered(process: SimulatedProcess, call: Call & { readonly answer: unknown }): void {
    const { verb, params, answer } = call;
    this.#checkers.locks.answered({ verb, answer });
    if (verb === "schedules.states" || verb === "schedules.due") this.#noteRead(process, answer);
    else if (verb === "claims.exchange") this.#checkExchange(params, answer);
    else if (verb === "commits.run") this.#checkCommit(params, answer);
    else if (verb === "steps.suspend") this.#checkSuspend(params, answer);
    else if (verb === "progress.write") checkToldAnswer(params, answer, this.#log);
    else if (verb === "claims.byToken" && (answer as unknown[]).length > 0)
      this.#log.saw("claim-read-back");
    else if (verb === "schedules.write") {
      const { changes } = params as { readonly changes: readonly unknown[] };
      if ((answer as unknown[]).length < changes.length) this.#log.saw("tick-raced");
    }
  }

  /** The caller never gets the response. */
  lost({ verb, params }: Call): void {
    if (verb === "claims.exchange") {
      const { limit, settlements } = params as ExchangeParams;
      if (limit > 0) this.#log.saw("lost-answer-of-claim");
      if (settlements.length > 0) this.#log.saw("lost-answer-of-settle");
    }
    if (verb === "commits.run")
      this.#log.saw(this.#isCommitted(params) ? "lost-answer-of-commit" : "lost-commit");
    if (verb === "steps.suspend") this.#log.saw("lost-answer-of-suspend");
    if (verb === "enqueue.runs") this.#log.saw("lost-answer-of-enqueue");
    if (verb === "schedules.write") this.#log.saw("lost-answer-of-tick");
  }

  #noteRead(process: SimulatedProcess, answer: unknown): void {
    const { now, schedules } = answer as {
      readonly now: number;
      readonly schedules: readonly { readonly id: number; readonly revision: number }[];
    };
    this.#checkers.monitors.looked(now);
    for (const state of schedules) this.#checkers.schedules.read(process.label, state, now);
  }

  /** The response to settlements agrees with the tables. */
  #checkExchange(params: unknown, answer: unknown): void {
    const { settlements } = params as ExchangeParams;
    const { stale } = answer as Pick<ExchangeResult, "stale">;
    const { ends, removed } = this.#checkers.runs;
    const refused = new Set(stale.map(({ id, fence }) => `${id} ${fence}`));
    for (const { id, fence } of settlements) {
      const key = `${id} ${fence}`;
      const end = ends.get(key);
      if (refused.has(key)) {
        this.#log.saw("stale-settle-refused");
        if (end === "reclaimed") this.#log.saw("completion-beaten-by-reaper");
        if (end === "settled" && !removed.has(id))
          this.#log.violate("S3", `Run ${id} was settled under ${fence}, and called stale.`);
      } else if (end !== "settled" && end !== "committed" && !removed.has(id))
        this.#log.violate("S3", `Run ${id} was not settled under ${fence}, and nobody said so.`);
    }
  }

  /** The response to a commit agrees with the tables. */
  #checkCommit(params: unknown, answer: unknown): void {
    const { id, fence } = params as Grant;
    const isStale = answer === "stale";
    if (isStale) this.#log.saw("stale-commit-refused");
    if (isStale === this.#isCommitted(params) && !this.#checkers.runs.removed.has(id))
      this.#log.violate("S3", `A commit of run ${id} under ${fence} was called ${answer}.`);
  }

  /** A repeated suspend returns what the first one did. */
  #checkSuspend(params: unknown, answer: unknown): void {
    const { id, fence } = params as Grant;
    const { result } = answer as Suspended;
    const { ends, removed } = this.#checkers.runs;
    const isSuspended = ends.get(`${id} ${fence}`) === "suspended";
    if ((result === "suspended") !== isSuspended && !removed.has(id))
      this.#log.violate("S3", `A suspend of run ${id} under ${fence} was called ${result}.`);
  }

  #isCommitted(params: unknown): boolean {
    const { id, fence } = params as Grant;
    return this.#checkers.runs.ends.get(`${id} ${fence}`) === "committed";
  }
}

/** Counts refused progress of runs that the process no longer holds. */
function checkToldAnswer(params: unknown, answer: unknown, log: EventLog): void {
  const { writes } = params as ProgressParams;
  const { held, unknown } = answer as ProgressResult;
  const isRefused = writes.some(
    ({ id, fence }) =>
      !unknown.includes(fence) &&
      !held.some((each) => each.fence === fence && each.ids.includes(id)),
  );
  if (isRefused) log.saw("stale-progress-refused");
}
