// Takes turns, claims deliveries and finds causes of dead rows for alerts on PostgreSQL. One statement takes a turn, on
// the connection of the heartbeats, since every instance asks for it; one statement claims deliveries. Row locks decide
// which caller gets a delivery.

import type { Culprit } from "../../alerts/rules/observation.js";
import {
  Alerts,
  type ClaimDeliveriesParams,
  type ClaimedDelivery,
  type TurnParams,
} from "../alerts/alerts.js";
import type { Row } from "./connection/connection.js";
import type { PostgresSession } from "./session.js";

/** A turn that lies far in the future was taken before the clock was set back. */
const TAKE_TURN = /* sql */ `
with now as materialized (select {now} as at),
seen as (
  update {instance} set skew_ms = :skewMs::bigint where no = :holder::int and skew_ms is distinct from :skewMs::bigint
),
taken as (
  insert into {alert_turn} as turn (id, taken_at, holder) select 1, now.at, :holder::int from now
  on conflict (id) do update set taken_at = excluded.taken_at, holder = excluded.holder
  where turn.taken_at <= excluded.taken_at - :everyMs::bigint or turn.taken_at > excluded.taken_at + :everyMs::bigint
  returning id
)
select now.at as now, exists (select from taken) as is_mine from now`;

/**
 * The instance that opened an alert may know other destinations than this caller: so an open alert without a delivery
 * to the caller's own destinations is included. An alert that another transaction is changing, and may be resolving, is
 * left to the next call.
 */
const CLAIM_DELIVERIES = /* sql */ `
with now as materialized (select {now} as at),
fresh as (
  insert into {alert_delivery} (alert, event, destination, state, attempts, next_at, tried_at)
  select a.id, 'opened', w.name, 'pending', 1, now.at + :leaseMs::bigint, now.at
  from now, {alert} a, unnest(:destinations::text[]) w (name)
  where a.resolved_at is null and a.told_at is not null and coalesce(a.muted_until, 0) <= now.at
    and not exists (select from {alert_delivery} x where x.alert = a.id and x.event = 'opened' and x.destination = w.name)
  for share of a skip locked
  on conflict (alert, event, destination) do nothing
  returning alert, event, destination, attempts
),
due as materialized (
  select d.alert, d.event, d.destination from {alert_delivery} d, now
  where d.state = 'pending' and d.next_at <= now.at and d.destination = any(:destinations::text[])
  order by d.next_at, d.alert limit :limit::int for no key update of d skip locked
),
taken as (
  update {alert_delivery} d set attempts = d.attempts + 1, next_at = now.at + :leaseMs::bigint, tried_at = now.at
  from due x, now
  where d.alert = x.alert and d.event = x.event and d.destination = x.destination
  returning d.alert, d.event, d.destination, d.attempts
)
select * from fresh union all select * from taken`;

/**
 * Uses the server's own clock, because these times are its own. A session that holds no snapshot and has written
 * nothing keeps no row from being removed.
 */
const CULPRITS = /* sql */ `
select 'transaction' as what, a.pid, a.application_name as name, coalesce(a.usename, '') as by, coalesce(a.state, '') as state,
  (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::bigint as age_ms, 0::bigint as dead, 0::bigint as live
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
  and (a.backend_xmin is not null or a.backend_xid is not null)
  and a.xact_start < clock_timestamp() - make_interval(secs => :transactionMs::bigint / 1000.0)
union all
select 'prepared', 0, p.gid, p.owner, '', (extract(epoch from clock_timestamp() - p.prepared) * 1000)::bigint, 0, 0
from pg_prepared_xacts p
where p.database = current_database() and p.prepared < clock_timestamp() - make_interval(secs => :transactionMs::bigint / 1000.0)
union all
select 'replication', 0, r.slot_name, '', '', 0, 0, 0 from pg_replication_slots r
where not r.active and (r.xmin is not null or r.catalog_xmin is not null) and age(coalesce(r.xmin, r.catalog_xmin)) > 1000000
union all
select 'bloat', 0, t.relname, '', '', 0, t.n_dead_tup, t.n_live_tup from pg_stat_user_tables t
where t.relid in ('{ready}'::regclass, '{lease}'::regclass, '{waiting}'::regclass)
  and t.n_dead_tup > 100000 and t.n_dead_tup > 5 * t.n_live_tup
order by age_ms desc limit 100`;

export class PostgresAlerts extends Alerts {
  readonly #session: PostgresSession;

  constructor(session: PostgresSession) {
    super(session);
    this.#session = session;
  }

  /** Not repeated: if the reply is lost, the turn is lost too, and the next one comes a minute later. */
  async takeTurn(params: TurnParams) {
    const { beat } = this.#session;
    const [row] = await this.#session.attempt("alerts.takeTurn", beat, TAKE_TURN, params);
    return { now: Number(row?.now), isMine: row?.is_mine === true };
  }

  /** Not repeated: if the reply is lost, the deliveries are due again when their lease is over. */
  async claimDeliveries(params: ClaimDeliveriesParams): Promise<readonly ClaimedDelivery[]> {
    const { work } = this.#session;
    const verb = "alerts.claimDeliveries";
    return this.claimed(await this.#session.attempt(verb, work, CLAIM_DELIVERIES, params));
  }

  protected async culprits(transactionMs: number): Promise<readonly Culprit[]> {
    const verb = "alerts.observeRest";
    return (await this.#session.repeat(verb, CULPRITS, { transactionMs })).map(toCulprit);
  }
}

function toCulprit(row: Row): Culprit {
  const [name, ageMs] = [String(row.name), Number(row.age_ms)];
  switch (row.what) {
    case "transaction": {
      const [pid, user, state] = [Number(row.pid), String(row.by), String(row.state)];
      return { what: "transaction", pid, application: name, user, state, ageMs };
    }
    case "prepared":
      return { what: "prepared", name, ageMs };
    case "replication":
      return { what: "replication", name };
    default:
      return {
        what: "bloat",
        table: name,
        deadRows: Number(row.dead),
        liveRows: Number(row.live),
      };
  }
}
