// Takes turns, claims deliveries and finds causes of dead rows for alerts on SQLite: a turn and a claim are two
// statements each in one short write transaction.

import type { Culprit } from "../../alerts/rules/observation.js";
import {
  Alerts,
  type ClaimDeliveriesParams,
  type ClaimedDelivery,
  type TurnParams,
} from "../alerts/alerts.js";
import type { SqliteFile } from "./connection/connection.js";
import { isOpenTransaction } from "./connection/handle.js";
import type { SqliteSession } from "./session.js";

const KEEP_SKEW = /* sql */ `
update {instance} set skew_ms = :skewMs where no = :holder and skew_ms is not :skewMs`;

const TAKE_TURN = /* sql */ `
insert into {alert_turn} (id, taken_at, holder) values (1, :now, :holder)
on conflict (id) do update set taken_at = excluded.taken_at, holder = excluded.holder
where taken_at <= :now - :everyMs or taken_at > :now + :everyMs`;

/** The instance that opened an alert may know other destinations than this caller: those are added here. */
const TELL_OPENED = /* sql */ `
insert into {alert_delivery} (alert, event, destination, state, attempts, next_at, tried_at)
select a.id, 'opened', w.value, 'pending', 0, :now, :now
from {alert} a, json_each(:destinations) w
where a.resolved_at is null and a.told_at is not null and coalesce(a.muted_until, 0) <= :now
on conflict (alert, event, destination) do nothing`;

const CLAIM_DELIVERIES = /* sql */ `
update {alert_delivery} set attempts = attempts + 1, next_at = :now + :leaseMs, tried_at = :now
where (alert, event, destination) in (
  select d.alert, d.event, d.destination from {alert_delivery} d
  where d.state = 'pending' and d.next_at <= :now and d.destination in (select value from json_each(:destinations))
  order by d.next_at, d.alert limit (:limit + 0)
)
returning alert, event, destination, attempts`;

/** Moves what it can without waiting; the remaining pages wait for a reader. */
const CHECKPOINT = /* sql */ `pragma wal_checkpoint(passive)`;

/** Four times the size at which SQLite checkpoints by itself: so much waits only if a reader is in the way. */
const PAGES_MAX = 4_000;

export class SqliteAlerts extends Alerts {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;

  constructor(session: SqliteSession) {
    super(session);
    this.#session = session;
    this.#file = session.file;
  }

  takeTurn(params: TurnParams) {
    return this.#session.transact("alerts.takeTurn", (now) => {
      this.#file.run(KEEP_SKEW, params);
      return { now, isMine: this.#file.run(TAKE_TURN, { ...params, now }) > 0 };
    });
  }

  async claimDeliveries({
    destinations,
    leaseMs,
    limit,
  }: ClaimDeliveriesParams): Promise<readonly ClaimedDelivery[]> {
    const asked = { destinations: JSON.stringify(destinations), leaseMs, limit };
    const rows = await this.#session.transact("alerts.claimDeliveries", (now) => {
      this.#file.run(TELL_OPENED, { ...asked, now });
      return this.#file.all(CLAIM_DELIVERIES, { ...asked, now });
    });
    return this.claimed(rows);
  }

  /** Inside a transaction of the handle's owner nothing can be moved: then the cause is unknown. */
  protected culprits(): Promise<readonly Culprit[]> {
    return this.#file.read(() => {
      if (isOpenTransaction(this.#file.handle)) return [];
      const row = this.#file.get(CHECKPOINT);
      const pages = Number(row?.log ?? 0) - Number(row?.checkpointed ?? 0);
      return pages > PAGES_MAX ? [{ what: "reader", pages }] : [];
    });
  }
}
