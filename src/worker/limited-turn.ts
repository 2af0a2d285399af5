// Whether an exchange also asks for runs that wait for a limit, and who has the first choice of the
// room: the two kinds of runs take turns, so that neither starves the other. Workers without limited
// jobs ask for suspects alone, which are rare.

import type { ExchangeParams } from "../store/store.js";
import type { RunnableJob } from "./execution.js";
import { isLimited } from "./rules/limits.js";

export class LimitedTurn {
  readonly #jobs: ReadonlyMap<string, RunnableJob>;
  #mayHave = false;
  #isFirst = false;

  constructor(jobs: ReadonlyMap<string, RunnableJob>) {
    this.#jobs = jobs;
  }

  /** There is something to claim; whether it is limited, nobody said. */
  mayBe(): void {
    if (this.#mayHave) return;
    for (const { limits } of this.#jobs.values()) if (isLimited(limits)) this.#mayHave = true;
  }

  /** There is something that a limit may let through: also of a job whose code has none any more. */
  is(): void {
    this.#mayHave = true;
  }

  /** What the next exchange says about it. Whoever hears of more says so again. */
  take(limit: number, wantsSuspect: boolean): Pick<ExchangeParams, "limited"> {
    if (limit === 0 || !(this.#mayHave || wantsSuspect)) return {};
    // Kept while claims go on: where the room was too small for all, there will be another turn.
    if (!wantsSuspect) this.#isFirst = !this.#isFirst;
    return { limited: this.#isFirst ? "first" : "last" };
  }

  /** The last claim had room left: nothing more is let through for now. */
  wasEnough(): void {
    this.#mayHave = false;
  }
}
