// What workers elsewhere were told, against what the tables say: an end or an item that was
// acknowledged is there, and what was refused changed nothing.

import type { Grant } from "../../../store/store.js";
import type { EventLog } from "../event-log.js";
import type { SimulatedDatabase } from "../fleet/database.js";
import type { RunHistory } from "./runs.js";

export class RemoteHistory {
  readonly #chronicle: EventLog;
  readonly #runs: RunHistory;
  /** Value by run and key. */
  readonly #items = new Map<string, string>();
  readonly #acknowledged = new Set<string>();

  constructor(chronicle: EventLog, runs: RunHistory) {
    this.#chronicle = chronicle;
    this.#runs = runs;
  }

  /** A completion or a failure was answered. */
  ended({ id, fence }: Grant, isAccepted: boolean): void {
    if (this.#runs.removed.has(id)) return;
    const key = `${id} ${fence}`;
    const isSettled = this.#runs.ends.get(key) === "settled";
    if (isAccepted && !isSettled)
      this.#chronicle.violate("S3", `Run ${id} was not ended under ${fence}, and was said to be.`);
    // An instance that sent it elsewhere may have been told to cancel it, and ended it before it was heard of.
    if (!isAccepted && isSettled && !this.#runs.cancelledEnds.has(key))
      this.#chronicle.violate("S3", `Run ${id} was ended under ${fence}, and called lost.`);
    if (!isAccepted) return;
    if (this.#acknowledged.has(key)) this.#chronicle.saw("remote-end-repeated");
    this.#acknowledged.add(key);
  }

  /** An answer under the fence of another run was given. */
  endedAnother(id: string, isAccepted: boolean): void {
    if (isAccepted) this.#chronicle.violate("S3", `Run ${id} was ended under another's fence.`);
    else this.#chronicle.saw("remote-other-refused");
  }

  storedItem({ id, key, value }: { readonly id: string; key: string; value: unknown }): void {
    this.#items.set(`${id} ${key}`, JSON.stringify(value));
  }

  /** An item once acknowledged keeps its value (S9, S11). */
  judgeItems(database: SimulatedDatabase): void {
    const rows = database.all(
      "select run || ' ' || key as name, value from holdfast_item where key like 'far-%'",
    );
    const stored = new Map(rows.map(({ name, value }) => [String(name), String(value)]));
    for (const [name, value] of this.#items) {
      const isGone = this.#runs.removed.has(name.split(" ")[0] ?? "");
      if (!isGone && stored.get(name) !== value)
        this.#chronicle.violate("S9", `Item ${name} was stored as ${value}: ${stored.get(name)}.`);
    }
  }
}
