// Keeps items on SQLite, and runs transactions in which a user's work and a write of ours commit together. Such work
// is synchronous: it holds the file and the event loop, so nothing else of this process runs in between.
// Many rows travel as one JSON value.

import { TxEndedError, TxMustBeSyncError } from "../../shared/errors.js";
import type * as items from "../items.js";
import {
  inRounds,
  judgeRepeat,
  RolledBack,
  ThrownByWork,
  toDoneItems,
  toItemRecords,
  wholeMs,
} from "../items.js";
import { itemPageOf } from "../sql/list-page.js";
import type { Grant, Settlement } from "../store.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteLeases } from "./leases.js";
import type { SqliteSession } from "./session.js";

/** Of these rows (run, key), those that are there, by their place. */
const KNOWN_ITEMS = /* sql */ `
select j.key as place, i.outcome, i.value, i.error is null as is_done
from json_each(:rows) j cross join {item} i on i.run = j.value ->> 0 and i.key = j.value ->> 1`;

/** An item that is done never changes: rows that would change one are not sent. */
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

export const ITEMS_BY_KEYS = /* sql */ `
select i.key, i.value from json_each(:keys) k cross join {item} i on i.run = :id and i.key = k.value
where i.error is null`;

export const DONE_ITEMS = /* sql */ `
select key, value, so_far <= :charsMax as is_within from (
  select key, value, sum(length(value)) over (order by key) as so_far from (
    select key, value from {item} where run = :id and error is null order by key limit (:limit + 0)))
where so_far - length(value) <= :charsMax order by key`;

const OF_OUTCOME =
  "i.run = :id and (:outcome is null or i.outcome = :outcome) and (:afterKey is null or";

const LIST_ITEMS = {
  key: itemPageOf({
    where: `${OF_OUTCOME} i.key > :afterKey)`,
    order: "i.key",
    limit: "(:limit + 0)",
  }),
  slowest: itemPageOf({
    where: `${OF_OUTCOME} i.duration_ms < :afterMs or (i.duration_ms = :afterMs and i.key > :afterKey))`,
    order: "i.duration_ms desc, i.key",
    limit: "(:limit + 0)",
  }),
} as const;

const IS_COMPLETED = /* sql */ `
select 1 from {outcome} where id = :id and fence = :fence and status = 1`;

export const DELETE_ITEMS = [
  /* sql */ `delete from {item} where run in (select value from json_each(:ids))`,
  /* sql */ `delete from {item_count} where run in (select value from json_each(:ids))`,
] as const;

type Known = { readonly outcome: string; readonly value: string; readonly isDone: boolean };

export class SqliteItems implements items.ItemStore<Settlement> {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: SqliteLeases;

  constructor(asker: SqliteSession, leases: SqliteLeases) {
    this.#asker = asker;
    this.#file = asker.file;
    this.#leases = leases;
  }

  storeItems(given: readonly items.ItemWrite[]): Promise<readonly items.ItemAnswer[]> {
    return this.#asker.write("storeItems", (now) => this.#store(given, now));
  }

  async doneItems({
    id,
    keys,
    limit,
    charsMax,
  }: Parameters<items.ItemStore<Settlement>["doneItems"]>[0]): ReturnType<
    items.ItemStore<Settlement>["doneItems"]
  > {
    return this.#file.read(() => {
      if (keys === null)
        return toDoneItems(this.#file.all(DONE_ITEMS, { id, limit, charsMax }), { limit });
      const rows = this.#file.all(ITEMS_BY_KEYS, { id, keys: JSON.stringify(keys) });
      const found = rows.map((row) => ({ key: String(row.key), value: String(row.value) }));
      return { items: found, isAll: false };
    });
  }

  async items(filter: items.ItemFilter): Promise<readonly items.ItemRecord[]> {
    const rows = await this.#file.read(() =>
      this.#file.all(LIST_ITEMS[filter.sort], {
        id: filter.id,
        outcome: filter.outcome ?? null,
        afterKey: filter.after?.key ?? null,
        afterMs: filter.after?.durationMs ?? null,
        limit: filter.limit,
      }),
    );
    return toItemRecords(rows);
  }

  commit({ work, chance }: items.CommitParams<Settlement>): Promise<"committed" | "stale"> {
    return this.#transact<"committed" | "stale">("ctx.commit", () => {
      const settlement = this.#work("ctx.commit", work);
      const { stale } = this.#leases.settle(
        { settlements: [settlement], chance },
        this.#asker.now(),
      );
      if (stale.length > 0) throw new RolledBack("stale");
      return "committed";
    });
  }

  commitItem({ work }: items.CommitItemParams): Promise<items.ItemAnswer> {
    return this.#transact<items.ItemAnswer>("ctx.item", () => {
      const item = this.#work("ctx.item", work);
      const [answer] = this.#store([item], this.#asker.now());
      if (answer !== "stored") throw new RolledBack(answer);
      return "stored";
    });
  }

  async grantState({ id, fence }: Grant): Promise<"held" | "completed" | "gone"> {
    return this.#file.read(() => {
      if (this.#file.get(IS_COMPLETED, { id, fence })) return "completed";
      return this.#leases.leases([fence]).get(fence)?.members.has(id) ? "held" : "gone";
    });
  }

  async #transact<Answer>(what: string, work: () => Answer): Promise<Answer> {
    try {
      return await this.#asker.write(what, work);
    } catch (error) {
      if (error instanceof RolledBack) return error.answer as Answer;
      throw error instanceof ThrownByWork ? error.error : error;
    }
  }

  /** The user's function, in the transaction that is open. */
  #work<Value>(verb: string, work: (tx: unknown) => Value | Promise<Value>): Value {
    let value: Value | Promise<Value>;
    try {
      value = work(this.#file.handle);
    } catch (error) {
      throw new ThrownByWork(error);
    }
    if (!this.#file.isInTransaction) throw new ThrownByWork(new TxEndedError(verb));
    if (!isThenable(value)) return value;
    // Nobody waits for it any more; what it ends with is of no interest.
    value.then(undefined, () => undefined);
    throw new ThrownByWork(new TxMustBeSyncError(verb));
  }

  #store(given: readonly items.ItemWrite[], now: number): items.ItemAnswer[] {
    const answers: items.ItemAnswer[] = [];
    const leases = this.#leases.leases(given.map(({ fence }) => fence));
    for (const places of inRounds(given)) {
      const known = this.#known(places.map((at) => given[at] as items.ItemWrite));
      const rows: (string | number | null)[][] = [];
      const counts = new Map<string, [run: string, outcome: string, items: number]>();
      const count = (run: string, outcome: string, change: number) => {
        const name = `${run} ${outcome}`;
        const before = counts.get(name)?.[2] ?? 0;
        counts.set(name, [run, outcome, before + change]);
      };
      places.forEach((at, place) => {
        const item = given[at] as items.ItemWrite;
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

  #known(given: readonly items.ItemWrite[]): ReadonlyMap<number, Known> {
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

function isThenable<Value>(value: Value | Promise<Value>): value is Promise<Value> {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { then?: unknown }).then === "function"
  );
}
