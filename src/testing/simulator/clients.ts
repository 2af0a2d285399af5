// What callers were told: acknowledged runs must exist from then on (S11), and a key or a delivery must
// mean the same run to everybody who uses it with the same input (S12).

import type { RunHistory } from "./checkers/runs.js";
import type { EventLog } from "./event-log.js";

export class Clients {
  readonly #chronicle: EventLog;
  readonly #runs: RunHistory;
  readonly #acknowledged = new Set<string>();
  readonly #keys = new Map<string, { readonly run: string; readonly input: string }>();

  constructor(chronicle: EventLog, runs: RunHistory) {
    this.#chronicle = chronicle;
    this.#runs = runs;
  }

  acknowledged(id: string): void {
    this.#acknowledged.add(id);
    this.#judge(id);
  }

  /** Somebody used a key, or a delivery's id, and was answered with this run. */
  answeredByKey(key: string, input: string, run: string): void {
    const known = this.#keys.get(key);
    if (!known || this.#runs.removed.has(known.run)) {
      this.#keys.set(key, { run, input });
      return;
    }
    if (known.input !== input)
      this.#chronicle.violate("S12", `${key} answered for another input than its first.`);
    if (known.run !== run)
      this.#chronicle.violate("S12", `${key} was run ${known.run}, and then run ${run}.`);
  }

  /** Somebody was refused, as the key belongs to a run with another input. */
  refusedByKey(key: string, input: string): void {
    const known = this.#keys.get(key);
    if (known && !this.#runs.removed.has(known.run) && known.input === input)
      this.#chronicle.violate("S12", `${key} was refused, although its input is the same.`);
  }

  isKnown(key: string): boolean {
    return this.#keys.has(key);
  }

  judgeAll(): void {
    for (const id of this.#acknowledged) this.#judge(id);
  }

  #judge(id: string): void {
    if (!this.#runs.runs.has(id) && !this.#runs.removed.has(id))
      this.#chronicle.violate("S11", `Run ${id} was acknowledged, and is nowhere.`);
  }
}
