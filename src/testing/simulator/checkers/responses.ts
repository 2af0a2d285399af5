// What processes are told of their store calls: it must be what became of them (S3), and some answers,
// or that there was none, are rare states of their own.

import type { ExchangeAnswer, ExchangeParams, Grant } from "../../../store/store.js";
import type { EventLog } from "../event-log.js";
import type { SimulatedProcess } from "../fleet/process.js";
import { judgeToldAnswer } from "../workload/reporting.js";
import type { Checkers } from "./checkers.js";

type Call = { readonly verb: string; readonly params: unknown };

export class Answers {
  readonly #chronicle: EventLog;
  readonly #judges: Checkers;

  constructor(chronicle: EventLog, judges: Checkers) {
    this.#chronicle = chronicle;
    this.#judges = judges;
  }

  /** An answer reached the process that had called. */
  answered(process: SimulatedProcess, call: Call & { readonly answer: unknown }): void {
    const { verb, params, answer } = call;
    this.#judges.locks.answered({ verb, answer });
    if (verb === "scheduleStates" || verb === "dueSchedules") this.#noteRead(process, answer);
    else if (verb === "exchange") this.#judgeExchange(params, answer);
    else if (verb === "commit") this.#judgeCommit(params, answer);
    else if (verb === "progress") judgeToldAnswer(params, answer, this.#chronicle);
    else if (verb === "claimsByToken" && (answer as unknown[]).length > 0)
      this.#chronicle.saw("claim-read-back");
    else if (verb === "writeSchedules") {
      const { changes } = params as { readonly changes: readonly unknown[] };
      if ((answer as unknown[]).length < changes.length) this.#chronicle.saw("tick-raced");
    }
  }

  /** The process will never know what became of its call. */
  lost({ verb, params }: Call): void {
    if (verb === "exchange") {
      const { limit, settlements } = params as ExchangeParams;
      if (limit > 0) this.#chronicle.saw("lost-answer-of-claim");
      if (settlements.length > 0) this.#chronicle.saw("lost-answer-of-settle");
    }
    if (verb === "commit")
      this.#chronicle.saw(this.#isCommitted(params) ? "lost-answer-of-commit" : "lost-commit");
    if (verb === "enqueue") this.#chronicle.saw("lost-answer-of-enqueue");
    if (verb === "writeSchedules") this.#chronicle.saw("lost-answer-of-tick");
  }

  #noteRead(process: SimulatedProcess, answer: unknown): void {
    const { now, schedules } = answer as {
      readonly now: number;
      readonly schedules: readonly { readonly id: number; readonly revision: number }[];
    };
    this.#judges.monitors.looked(now);
    for (const state of schedules) this.#judges.schedules.read(process.label, state, now);
  }

  /** What a holder is told of its settlements is what became of them. */
  #judgeExchange(params: unknown, answer: unknown): void {
    const { settlements } = params as ExchangeParams;
    const { stale } = answer as Pick<ExchangeAnswer, "stale">;
    const { ends, removed } = this.#judges.runs;
    const refused = new Set(stale.map(({ id, fence }) => `${id} ${fence}`));
    for (const { id, fence } of settlements) {
      const key = `${id} ${fence}`;
      const end = ends.get(key);
      if (refused.has(key)) {
        this.#chronicle.saw("stale-settle-refused");
        if (end === "reclaimed") this.#chronicle.saw("completion-beaten-by-reaper");
        if (end === "settled" && !removed.has(id))
          this.#chronicle.violate("S3", `Run ${id} was settled under ${fence}, and called stale.`);
      } else if (end !== "settled" && end !== "committed" && !removed.has(id))
        this.#chronicle.violate(
          "S3",
          `Run ${id} was not settled under ${fence}, and nobody said so.`,
        );
    }
  }

  /** The same of a commit. */
  #judgeCommit(params: unknown, answer: unknown): void {
    const { id, fence } = params as Grant;
    const isStale = answer === "stale";
    if (isStale) this.#chronicle.saw("stale-commit-refused");
    if (isStale === this.#isCommitted(params) && !this.#judges.runs.removed.has(id))
      this.#chronicle.violate("S3", `A commit of run ${id} under ${fence} was called ${answer}.`);
  }

  #isCommitted(params: unknown): boolean {
    const { id, fence } = params as Grant;
    return this.#judges.runs.ends.get(`${id} ${fence}`) === "committed";
  }
}
