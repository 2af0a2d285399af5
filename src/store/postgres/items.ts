// Items on PostgreSQL, and transactions in which users' work and a write of ours commit together.

import { OutcomeUnknownError } from "../../shared/errors.js";
import { type Clock, delay } from "../../shared/ports.js";
import type * as items from "../items.js";
import {
  inRounds,
  judgeRepeat,
  RolledBack,
  toDoneItems,
  toItemRecords,
  wholeMs,
} from "../items.js";
import type { Grant, Settlement } from "../store.js";
import type { OpenTransaction, Transactor } from "../transaction.js";
import { plainColumn, textColumn } from "./array.js";
import { LinkFailure, type PostgresSource, type Row } from "./connection.js";
import type { PostgresSession } from "./session.js";
import { settlementColumns } from "./settlements.js";
import { FINISH, FINISH_CHILD, FINISH_LIMITED, FINISH_SCHEDULED } from "./sql/exchange.js";
import * as sql from "./sql/items.js";
import { PostgresTransactor } from "./transactor.js";

/** Another transaction under way under the same fence has ended by then. */
const STATE_TRIES_MAX = 100;
/** An item that another statement stores at this moment is seen by the next look. */
const STORE_TRIES_MAX = 5;

type Send = (template: string, params: Row) => Promise<Row[]>;

export class PostgresItems implements items.ItemStore<Settlement> {
  readonly #asker: PostgresSession;
  readonly #clock: Clock;
  readonly #own: PostgresTransactor;

  get load(): PostgresTransactor["load"] {
    return this.#own.load;
  }

  constructor(params: {
    readonly asker: PostgresSession;
    readonly source: PostgresSource;
    readonly clock: Clock;
  }) {
    this.#asker = params.asker;
    this.#clock = params.clock;
    this.#own = new PostgresTransactor(params);
  }

  close(): Promise<void> {
    return this.#own.close();
  }

  async storeItems(given: readonly items.ItemWrite[]): Promise<readonly items.ItemAnswer[]> {
    const answers: items.ItemAnswer[] = [];
    const ask: Send = (template, params) => this.#asker.repeat("storeItems", template, params);
    for (const places of inRounds(given)) {
      const round = places.map((at) => given[at] as items.ItemWrite);
      const stored = await store(ask, round, sql.STORE_ITEMS);
      places.forEach((at, place) => {
        answers[at] = stored[place] as items.ItemAnswer;
      });
    }
    return answers;
  }

  async doneItems({
    id,
    keys,
    limit,
    charsMax,
  }: Parameters<items.ItemStore<Settlement>["doneItems"]>[0]): ReturnType<
    items.ItemStore<Settlement>["doneItems"]
  > {
    if (keys !== null) {
      const rows = await this.#asker.repeat("doneItems", sql.ITEMS_BY_KEYS, {
        id,
        keys: textColumn(keys, (key) => key),
      });
      const found = rows.map((row) => ({ key: String(row.key), value: String(row.value) }));
      return { items: found, isAll: false };
    }
    const rows = await this.#asker.repeat("doneItems", sql.DONE_ITEMS, { id, limit, charsMax });
    return toDoneItems(rows, { limit });
  }

  async items(filter: items.ItemFilter): Promise<readonly items.ItemRecord[]> {
    const rows = await this.#asker.repeat("items", sql.LIST_ITEMS[filter.sort], {
      id: filter.id,
      outcome: filter.outcome ?? null,
      afterKey: filter.after?.key ?? null,
      afterMs: filter.after?.durationMs ?? null,
      limit: filter.limit,
    });
    return toItemRecords(rows);
  }

  /** The lease is locked by the last statement alone: heartbeats of its other runs are not held up. */
  async commit(params: items.CommitParams<Settlement>): Promise<"committed" | "stale"> {
    const { holder, chance, work } = params;
    return this.#transact<"committed" | "stale">("commit", params, async ({ tx, query }) => {
      const settlement = await work(tx);
      const [row] = await this.#asker.withinForeign(query, finishText(settlement), {
        ...settlementColumns([settlement]),
        chance,
        // A row of its own: a commit and an exchange of one instance do not wait for one another.
        shard: -1 - holder,
      });
      if (row?.unapplied) throw new RolledBack("stale");
      return "committed";
    });
  }

  async commitItem(params: items.CommitItemParams): Promise<items.ItemAnswer> {
    return this.#transact<items.ItemAnswer>("commitItem", params, async ({ tx, query }) => {
      const item = await params.work(tx);
      const ask: Send = (template, values) => this.#asker.withinForeign(query, template, values);
      const [answer] = await store(ask, [item], sql.STORE_ITEM_LAST);
      if (answer !== "stored") throw new RolledBack(answer);
      return "stored";
    });
  }

  async grantState(grant: Grant): Promise<"held" | "completed" | "gone"> {
    for (let tries = 1; tries <= STATE_TRIES_MAX; tries += 1) {
      const [row = {}] = await this.#asker.repeat("grantState", sql.GRANT_STATE, grant);
      if (row.completed === true) return "completed";
      if (row.held === true) return "held";
      if (row.there !== true) return "gone";
      await delay(this.#clock, Math.min(100, tries * 5));
    }
    throw new OutcomeUnknownError("grantState");
  }

  /** Until COMMIT is sent every failure is certain. After it only an answer of the server is. */
  async #transact<Answer>(
    what: string,
    { on, timeoutMs }: { readonly on: Transactor | null; readonly timeoutMs: number },
    fn: (opened: OpenTransaction) => Promise<Answer>,
  ): Promise<Answer> {
    let isCommitting = false;
    const work = async (opened: OpenTransaction) => {
      const answer = await fn(opened);
      isCommitting = true;
      return answer;
    };
    try {
      return await (on ? on.transact(work) : this.#own.transact(work, timeoutMs));
    } catch (error) {
      if (error instanceof RolledBack) return error.answer as Answer;
      const isLink = error instanceof LinkFailure;
      if (isCommitting && !(isLink && error.isCertain))
        throw new OutcomeUnknownError(what, { cause: isLink ? error.cause : error });
      const certain = isLink ? new LinkFailure(error.cause, error.code, true) : error;
      return this.#asker.described(what, () => Promise.reject(certain));
    }
  }
}

/**
 * No item occurs twice. Whether all were stored is told by their number; where they were not, those of
 * each grant are asked about by themselves, and then one by one: storing an item again is no news.
 */
async function store(
  ask: Send,
  given: readonly items.ItemWrite[],
  template: string,
): Promise<readonly items.ItemAnswer[]> {
  const [row] = await ask(template, columnsOf(given));
  if (row?.stored === given.length) return given.map(() => "stored");
  if (row?.is_held === false) return given.map(() => "stale");
  const [only, ...others] = given;
  if (only && others.length === 0) return [await kept(ask, only)];
  const grants = new Map<string, items.ItemWrite[]>();
  for (const item of given) {
    const name = `${item.id} ${item.fence}`;
    grants.set(name, [...(grants.get(name) ?? []), item]);
  }
  const parts = grants.size > 1 ? [...grants.values()] : given.map((item) => [item]);
  const answers = new Map<items.ItemWrite, items.ItemAnswer>();
  for (const part of parts) {
    const stored = await store(ask, part, template);
    part.forEach((item, at) => {
      answers.set(item, stored[at] as items.ItemAnswer);
    });
  }
  return given.map((item) => answers.get(item) as items.ItemAnswer);
}

/** An item that is done and stays; one that another statement stores at this moment is asked for again. */
async function kept(ask: Send, item: items.ItemWrite): Promise<items.ItemAnswer> {
  for (let tries = 1; tries <= STORE_TRIES_MAX; tries += 1) {
    const [found] = await ask(sql.ITEMS_BY_KEYS, {
      id: item.id,
      keys: textColumn([item.key], (key) => key),
    });
    if (found)
      return judgeRepeat(item, { outcome: String(found.outcome), value: String(found.value) });
  }
  throw new OutcomeUnknownError("storeItems");
}

function columnsOf(given: readonly items.ItemWrite[]): Row {
  return {
    ids: plainColumn(given, ({ id }) => id),
    fences: plainColumn(given, ({ fence }) => fence),
    keys: textColumn(given, ({ key }) => key),
    outcomes: textColumn(given, ({ outcome }) => outcome),
    durations: plainColumn(given, ({ durationMs }) => wholeMs(durationMs)),
    values: textColumn(given, ({ value }) => value),
    errors: textColumn(given, ({ error }) => error),
  };
}

/** No more than what this run belongs to: every part of a plan is prepared for every execution. */
function finishText({ batch, schedule, isLimited }: Settlement): string {
  if (isLimited) return FINISH_LIMITED;
  if (batch !== null) return FINISH_CHILD;
  return schedule === null ? FINISH : FINISH_SCHEDULED;
}
