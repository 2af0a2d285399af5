// Stores items on SQLite. Many rows travel as one JSON value.

import {
  type ItemResult,
  Items,
  type ItemWrite,
  inRounds,
  judgeRepeat,
  wholeMs,
} from "../items.js";
import type { SqliteFile } from "./connection/connection.js";
import type { LeaseRows } from "./lease-rows.js";
import type { SqliteSession } from "./session.js";

/** Of these rows (run, key), the existing ones, by position. */
const KNOWN_ITEMS = /* sql */ `
select j.key as place, i.outcome, i.value, i.error is null as is_done
from json_each(:rows) j cross join {item} i on i.run = j.value ->> 0 and i.key = j.value ->> 1`;

/** A done item never changes: rows that would change one are not sent. */
const PUT_ITEMS = /* sql */ `
insert into {item} (run, key, fence, attempt, outcome, started_at, duration_ms, value, error)
select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now - (value ->> 5), value ->> 5,
  value ->> 6, value ->> 7
from json_each(:rows) where true
on conflict do update set fence = excluded.fence, attempt = excluded.attempt, outcome = excluded.outcome,
  started_at = excluded.started_at, duration_ms = excluded.duration_ms, value = excluded.value, error = excluded.error`;

const COUNT_ITEMS = /* sql */ `
insert into {item_count} (run, outcome, items)
select value ->> 0, value ->> 1, value ->> 2 from json_each(:rows) where true
on conflict do update set items = items + excluded.items`;

type Known = { readonly outcome: string; readonly value: string; readonly isDone: boolean };

export class SqliteItems extends Items {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: LeaseRows;

  constructor(session: SqliteSession, leases: LeaseRows) {
    super(session);
    this.#session = session;
    this.#file = session.file;
    this.#leases = leases;
  }

  override store(given: readonly ItemWrite[]): Promise<readonly ItemResult[]> {
    return this.#session.transact("items.store", (now) => this.storeNow(given, now));
  }

  /** Runs inside a transaction. */
  storeNow(given: readonly ItemWrite[], now: number): ItemResult[] {
    const answers: ItemResult[] = [];
    const leases = this.#leases.leases(given.map(({ fence }) => fence));
    for (const places of inRounds(given)) {
      const known = this.#known(places.map((at) => given[at] as ItemWrite));
      const rows: (string | number | null)[][] = [];
      const counts = new Map<string, [run: string, outcome: string, items: number]>();
      const count = (run: string, outcome: string, change: number) => {
        const name = `${run} ${outcome}`;
        const before = counts.get(name)?.[2] ?? 0;
        counts.set(name, [run, outcome, before + change]);
      };
      places.forEach((at, place) => {
        const item = given[at] as ItemWrite;
        const { id, key, fence, outcome, value, error } = item;
        const lease = leases.get(fence);
        const there = known.get(place);
        if (!lease?.members.has(id)) answers[at] = "stale";
        else if (there?.isDone) answers[at] = judgeRepeat(item, there);
        else {
          const durationMs = wholeMs(item.durationMs);
          rows.push([id, key, fence, lease.row.attempt, outcome, durationMs, value, error]);
          if (there) count(id, there.outcome, -1);
          count(id, outcome, 1);
          answers[at] = "stored";
        }
      });
      if (rows.length === 0) continue;
      this.#file.runEach(PUT_ITEMS, rows, { now });
      const changed = [...counts.values()].filter(([, , change]) => change !== 0);
      this.#file.runEach(COUNT_ITEMS, changed);
    }
    return answers;
  }

  #known(given: readonly ItemWrite[]): ReadonlyMap<number, Known> {
    const rows = JSON.stringify(given.map(({ id, key }) => [id, key]));
    return new Map(
      this.#file.all(KNOWN_ITEMS, { rows }).map((row) => [
        Number(row.place),
        {
          outcome: String(row.outcome),
          value: String(row.value),
          isDone: row.is_done === 1,
        },
      ]),
    );
  }
}
