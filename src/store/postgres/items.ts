// Keeps items on PostgreSQL, and runs transactions in which a user's work and a write of ours commit together.

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
import { itemPageOf } from "../sql/list-page.js";
import type { Grant, Settlement } from "../store.js";
import type { OpenTransaction, Transactor } from "../transaction.js";
import { plainColumn, textColumn } from "./array.js";
import { LinkFailure, type PostgresSource, type Row } from "./connection.js";
import type { PostgresSession } from "./session.js";
import { settlementColumns } from "./settlements.js";
import { FINISH, FINISH_CHILD, FINISH_LIMITED, FINISH_SCHEDULED } from "./sql/exchange.js";
import { PostgresTransactor } from "./transactor.js";

/**
 * The lease is locked as weakly as keeps others from ending it: a renewal is not held up, and so a
 * run that writes items all the time keeps its lease. An item that is there and failed is replaced;
 * one that is done stays, whatever comes. `tries` tells a new row from a replaced one, so that the
 * counts are exact whoever else writes. Only how many were stored is answered, and whether any of their
 * leases was held: it is nearly always all, and which ones were not would cost every statement a join.
 */
const STORE_ITEMS = /* sql */ `
with locked as materialized (
  select fence, attempt, ids from {lease} where fence = any(:fences::bigint[]) for key share
),
stored as (
  insert into {item} as t (run, key, fence, attempt, tries, outcome, started_at, duration_ms, value, error)
  select s.id, s.key, s.fence, k.attempt, 1, s.outcome, {now} - s."durationMs", s."durationMs", s.value, s.error
  from locked k join unnest(:ids::uuid[], :fences::bigint[], :keys::text[], :outcomes::text[],
    :durations::bigint[], :values::text[], :errors::text[])
    as s (id, fence, key, outcome, "durationMs", value, error) on s.fence = k.fence
  where s.id = any(k.ids)
  on conflict (run, key) do update set fence = excluded.fence, attempt = excluded.attempt, tries = t.tries + 1,
    outcome = excluded.outcome, started_at = excluded.started_at, duration_ms = excluded.duration_ms,
    value = excluded.value, error = excluded.error
    where t.error is not null
  returning t.run, t.outcome, t.tries
),
counted as (
  insert into {item_count} as c (run, outcome, items)
  select d.run, d.outcome, sum(d.change) from (
    select run, outcome, 1 as change from stored
    union all select run, 'failed', -1 from stored where tries > 1) d
  group by d.run, d.outcome having sum(d.change) <> 0 order by d.run, d.outcome
  on conflict (run, outcome) do update set items = c.items + excluded.items
)
select exists (select from locked where ids && :ids::uuid[]) as is_held, (select count(*)::int from stored) as stored`;

/**
 * The same before COMMIT of a transaction that users' work is in. Whoever falls silent between the
 * two must not keep others from the lease: the server ends the session then.
 */
const STORE_ITEM_LAST = /* sql */ `${STORE_ITEMS},
  set_config('idle_in_transaction_session_timeout', '5000', true) as patience`;

export const ITEMS_BY_KEYS = /* sql */ `
select i.key, i.outcome, i.value from unnest(:keys::text[]) k (key),
  lateral (select x.key, x.outcome, x.value from {item} x
    where x.run = :id::uuid and x.key = k.key and x.error is null offset 0) i`;

export const DONE_ITEMS = /* sql */ `
select i.key, i.value, i.so_far <= :charsMax::bigint as is_within from (
  select x.key, x.value, sum(length(x.value)) over (order by x.key) as so_far
  from {item} x where x.run = :id::uuid and x.error is null order by x.key limit :limit) i
where i.so_far - length(i.value) <= :charsMax::bigint order by i.key`;

const OF_OUTCOME =
  "i.run = :id::uuid and (:outcome::text is null or i.outcome = :outcome::text) and (:afterKey::text is null or";

const LIST_ITEMS = {
  key: itemPageOf({
    where: `${OF_OUTCOME} i.key > :afterKey::text collate "C")`,
    order: "i.key",
    limit: ":limit",
  }),
  slowest: itemPageOf({
    where: `${OF_OUTCOME} i.duration_ms < :afterMs::bigint
      or (i.duration_ms = :afterMs::bigint and i.key > :afterKey::text collate "C"))`,
    order: "i.duration_ms desc, i.key",
    limit: ":limit",
  }),
} as const;

/**
 * Where a grant stands. A lease that is there, but that somebody holds locked, is neither: its
 * transaction may yet commit, so it is asked about again.
 */
const GRANT_STATE = /* sql */ `
with locked as materialized (
  select ids from {lease} where fence = :fence::bigint for update skip locked
)
select
  exists (select from locked k where :id::uuid = any(k.ids)) as held,
  exists (select from {lease} k where k.fence = :fence::bigint and :id::uuid = any(k.ids)) as there,
  exists (select from {outcome} o where o.id = :id::uuid and o.fence = :fence::bigint and o.status = 1) as completed`;

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
      const stored = await store(ask, round, STORE_ITEMS);
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
      const rows = await this.#asker.repeat("doneItems", ITEMS_BY_KEYS, {
        id,
        keys: textColumn(keys, (key) => key),
      });
      const found = rows.map((row) => ({ key: String(row.key), value: String(row.value) }));
      return { items: found, isAll: false };
    }
    const rows = await this.#asker.repeat("doneItems", DONE_ITEMS, { id, limit, charsMax });
    return toDoneItems(rows, { limit });
  }

  async items(filter: items.ItemFilter): Promise<readonly items.ItemRecord[]> {
    const rows = await this.#asker.repeat("items", LIST_ITEMS[filter.sort], {
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
      const [answer] = await store(ask, [item], STORE_ITEM_LAST);
      if (answer !== "stored") throw new RolledBack(answer);
      return "stored";
    });
  }

  async grantState(grant: Grant): Promise<"held" | "completed" | "gone"> {
    for (let tries = 1; tries <= STATE_TRIES_MAX; tries += 1) {
      const [row = {}] = await this.#asker.repeat("grantState", GRANT_STATE, grant);
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
    const [found] = await ask(ITEMS_BY_KEYS, {
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
