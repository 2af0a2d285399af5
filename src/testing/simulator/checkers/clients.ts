// Checks the responses to callers: acknowledged runs exist from then on (S11), and a key or a delivery means the same
// run to all callers that use it with the same input (S12).

import type { EventLog } from "../event-log.js";
import type { RunHistory } from "./runs.js";

export class Clients {
  readonly #log: EventLog;
  readonly #runs: RunHistory;
  readonly #acknowledged = new Set<string>();
  readonly #keys = new Map<string, { readonly run: string; readonly input: string }>();

  constructor(log: EventLog, runs: RunHistory) {
    this.#log = log;
    this.#runs = runs;
  }

  acknowledged(id: string): void {
    this.#acknowledged.add(id);
    this.#check(id);
  }

  /** A caller used a key, or a delivery's id, and got this run. */
  answeredByKey(key: string, input: string, run: string): void {
    const known = this.#keys.get(key);
    if (!known || this.#runs.removed.has(known.run)) {
      this.#keys.set(key, { run, input });
      return;
    }
    if (known.input !== input)
      this.#log.violate("S12", `${key} answered for another input than its first.`);
    if (known.run !== run)
      this.#log.violate("S12", `${key} was run ${known.run}, and then run ${run}.`);
  }

  /** A caller was refused, because the key belongs to a run with another input. */
  refusedByKey(key: string, input: string): void {
    const known = this.#keys.get(key);
    if (known && !this.#runs.removed.has(known.run) && known.input === input)
      this.#log.violate("S12", `${key} was refused, although its input is the same.`);
  }

  isKnown(key: string): boolean {
    return this.#keys.has(key);
  }

  checkAll(): void {
    for (const id of this.#acknowledged) this.#check(id);
  }

  #check(id: string): void {
    if (!this.#runs.runs.has(id) && !this.#runs.removed.has(id))
      this.#log.violate("S11", `Run ${id} was acknowledged, and is nowhere.`);
  }
}
