// Compares the responses to remote workers with the tables: every acknowledged end or item is stored, and a refused
// call changed nothing.

import type { Grant } from "../../../store/claims.js";
import type { EventLog } from "../event-log.js";
import type { SimulatedDatabase } from "../fleet/database.js";
import type { RunHistory } from "./runs.js";

export class RemoteHistory {
  readonly #log: EventLog;
  readonly #runs: RunHistory;
  /** Value by run and key. */
  readonly #items = new Map<string, string>();
  readonly #acknowledged = new Set<string>();

  constructor(log: EventLog, runs: RunHistory) {
    this.#log = log;
    this.#runs = runs;
  }

  /** A remote worker got the response to a completion or a failure. */
  ended({ id, fence }: Grant, isAccepted: boolean): void {
    if (this.#runs.removed.has(id)) return;
    const key = `${id} ${fence}`;
    const isSettled = this.#runs.ends.get(key) === "settled";
    if (isAccepted && !isSettled)
      this.#log.violate("S3", `Run ${id} was not ended under ${fence}, and was said to be.`);
    // The instance that dispatched it may have cancelled and ended it before this call arrived.
    if (!isAccepted && isSettled && !this.#runs.cancelledEnds.has(key))
      this.#log.violate("S3", `Run ${id} was ended under ${fence}, and called lost.`);
    if (!isAccepted) return;
    if (this.#acknowledged.has(key)) this.#log.saw("remote-end-repeated");
    this.#acknowledged.add(key);
  }

  /** A remote worker got the response to an end under the fence of another run. */
  endedAnother(id: string, isAccepted: boolean): void {
    if (isAccepted) this.#log.violate("S3", `Run ${id} was ended under another's fence.`);
    else this.#log.saw("remote-other-refused");
  }

  storedItem({ id, key, value }: { readonly id: string; key: string; value: unknown }): void {
    this.#items.set(`${id} ${key}`, JSON.stringify(value));
  }

  /** An acknowledged item keeps its value (S9, S11). */
  checkItems(database: SimulatedDatabase): void {
    const rows = database.all(
      "select run || ' ' || key as name, value from holdfast_item where key like 'far-%'",
    );
    const stored = new Map(rows.map(({ name, value }) => [String(name), String(value)]));
    for (const [name, value] of this.#items) {
      const isGone = this.#runs.removed.has(name.split(" ")[0] ?? "");
      if (!isGone && stored.get(name) !== value)
        this.#log.violate("S9", `Item ${name} was stored as ${value}: ${stored.get(name)}.`);
    }
  }
}
