// Stores items on PostgreSQL: one statement for many items of many runs.

import { OutcomeUnknownError } from "../../shared/errors.js";
import {
  ITEMS_BY_KEYS,
  type ItemResult,
  Items,
  type ItemWrite,
  inRounds,
  judgeRepeat,
  wholeMs,
} from "../items.js";
import { plainColumn, textColumn } from "./connection/array.js";
import type { Row } from "./connection/connection.js";
import type { PostgresSession } from "./session.js";

/**
 * The lease gets the weakest lock that keeps other transactions from ending it: a renewal does not wait, so a run that
 * writes items all the time keeps its lease. A failed item is replaced; a done item stays, whatever arrives. `tries`
 * distinguishes a new row from a replaced one, so that the counts are exact with concurrent writers. The statement
 * returns only how many items were stored, and whether any of their leases was held: it is nearly always all, and
 * returning which ones were not would cost every statement a join.
 */
export const STORE_ITEMS = /* sql */ `
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
 * The same before COMMIT of a transaction with a user's work. If the client falls silent between the two, it must not
 * keep other transactions from the lease: the server then ends the session.
 */
export const STORE_ITEM_LAST = /* sql */ `${STORE_ITEMS},
  set_config('idle_in_transaction_session_timeout', '5000', true) as patience`;

/** An item that another statement is storing at this moment is visible to the next try. */
const STORE_TRIES_MAX = 5;

export type Send = (template: string, params: Row) => Promise<Row[]>;

export class PostgresItems extends Items {
  readonly #session: PostgresSession;

  constructor(session: PostgresSession) {
    super(session);
    this.#session = session;
  }

  override async store(given: readonly ItemWrite[]): Promise<readonly ItemResult[]> {
    const answers: ItemResult[] = [];
    const send: Send = (template, params) => this.#session.repeat("items.store", template, params);
    for (const places of inRounds(given)) {
      const round = places.map((at) => given[at] as ItemWrite);
      const stored = await storeItems(send, round, STORE_ITEMS);
      places.forEach((at, place) => {
        answers[at] = stored[place] as ItemResult;
      });
    }
    return answers;
  }
}

/**
 * No item occurs twice. Their number shows whether all were stored; if not, the items of each grant are tried by
 * themselves, and then one by one: storing an item again is harmless.
 */
export async function storeItems(
  send: Send,
  given: readonly ItemWrite[],
  template: string,
): Promise<readonly ItemResult[]> {
  const [row] = await send(template, columnsOf(given));
  if (row?.stored === given.length) return given.map(() => "stored");
  if (row?.is_held === false) return given.map(() => "stale");
  const [only, ...others] = given;
  if (only && others.length === 0) return [await kept(send, only)];
  const grants = new Map<string, ItemWrite[]>();
  for (const item of given) {
    const name = `${item.id} ${item.fence}`;
    grants.set(name, [...(grants.get(name) ?? []), item]);
  }
  const parts = grants.size > 1 ? [...grants.values()] : given.map((item) => [item]);
  const answers = new Map<ItemWrite, ItemResult>();
  for (const part of parts) {
    const stored = await storeItems(send, part, template);
    part.forEach((item, at) => {
      answers.set(item, stored[at] as ItemResult);
    });
  }
  return given.map((item) => answers.get(item) as ItemResult);
}

/** A done item, which stays; one that another statement is storing at this moment is tried again. */
async function kept(send: Send, item: ItemWrite): Promise<ItemResult> {
  for (let tries = 1; tries <= STORE_TRIES_MAX; tries += 1) {
    const [found] = await send(ITEMS_BY_KEYS.postgres, {
      id: item.id,
      keys: textColumn([item.key], (key) => key),
    });
    if (found)
      return judgeRepeat(item, { outcome: String(found.outcome), value: String(found.value) });
  }
  throw new OutcomeUnknownError("items.store");
}

function columnsOf(given: readonly ItemWrite[]): Row {
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
