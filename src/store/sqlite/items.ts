// Items on SQLite, and transactions in which users' work and a write of ours commit together. Such work
// is synchronous: it holds the file and the event loop, and nothing of this process comes between.

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
import type { Grant, Settlement } from "../store.js";
import type { SqliteFile } from "./connection.js";
import type { SqliteLeases } from "./leases.js";
import type { SqliteSession } from "./session.js";
import * as sql from "./sql/items.js";

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
        return toDoneItems(this.#file.all(sql.DONE_ITEMS, { id, limit, charsMax }), { limit });
      const rows = this.#file.all(sql.ITEMS_BY_KEYS, { id, keys: JSON.stringify(keys) });
      const found = rows.map((row) => ({ key: String(row.key), value: String(row.value) }));
      return { items: found, isAll: false };
    });
  }

  async items(filter: items.ItemFilter): Promise<readonly items.ItemRecord[]> {
    const rows = await this.#file.read(() =>
      this.#file.all(sql.LIST_ITEMS[filter.sort], {
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
      if (this.#file.get(sql.IS_COMPLETED, { id, fence })) return "completed";
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
      this.#file.runEach(sql.PUT_ITEMS, rows, { now });
      const changed = [...counts.values()].filter(([, , change]) => change !== 0);
      this.#file.runEach(sql.COUNT_ITEMS, changed);
    }
    return answers;
  }

  #known(given: readonly items.ItemWrite[]): ReadonlyMap<number, Known> {
    const rows = JSON.stringify(given.map(({ id, key }) => [id, key]));
    return new Map(
      this.#file.all(sql.KNOWN_ITEMS, { rows }).map((row) => [
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
