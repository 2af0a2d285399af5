// Lists queues and pauses them. A claim reads the pause of its queue itself.

import { type Audited, auditedWrite } from "./audit.js";
import { numberOrNull, type Row, textOrNull } from "./rows.js";
import type { StoreSession } from "./session.js";

const LIST = /* sql */ `
with counts as (
  select lane, count(*) as ready, 0 as waiting, 0 as running from {ready} group by lane
  union all
  select lane, 0, count(*), 0 from {waiting} group by lane
  union all
  select lane, 0, 0, sum({length}(ids)) from {lease} group by lane
)
select n.name, q.paused_at, q.pause_note, coalesce(c.ready, 0) as ready, coalesce(c.waiting, 0) as waiting,
  coalesce(c.running, 0) as running
from (select l.queue as name from {lane} l union select x.name from {queue} x) n
left join {queue} q on q.name = n.name
left join (
  select l.queue, sum(x.ready) as ready, sum(x.waiting) as waiting, sum(x.running) as running
  from counts x join {lane} l on l.id = x.lane group by l.queue) c on c.queue = n.name
order by n.name {bytewise}`;

/** A pause that is on already is not written again, and resuming creates no unknown queue. */
const PAUSE = /* sql */ `
insert into {queue} as q (name, paused_at, pause_note)
select :queue, case when :isPaused::boolean then {now} end, case when :isPaused::boolean then :note::text end
where :isPaused::boolean or exists (select 1 from {queue} x where x.name = :queue)
on conflict (name) do update set
  paused_at = case when :isPaused::boolean then coalesce(q.paused_at, {now}) end,
  pause_note = case when :isPaused::boolean then coalesce(:note::text, q.pause_note) end
where (q.paused_at is not null) <> :isPaused::boolean or (:isPaused::boolean and :note::text <> coalesce(q.pause_note, ''))
returning name`;

export type QueueRecord = {
  readonly name: string;
  readonly ready: number;
  readonly waiting: number;
  readonly running: number;
  readonly pausedAt: number | null;
  readonly pauseNote: string | null;
};

export class Queues {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** Every queue that a run was ever sent to or that was paused, by name. */
  async list(): Promise<readonly QueueRecord[]> {
    return (await this.#session.read({ verb: "queues.list", sql: LIST })).map(toQueueRecord);
  }

  /** Pauses or resumes a queue. */
  async pause({
    queue,
    isPaused,
    note = null,
    audit,
  }: {
    readonly queue: string;
    readonly isPaused: boolean;
    readonly note?: string | null;
  } & Audited): Promise<void> {
    const params = { queue, isPaused, note };
    await auditedWrite(this.#session, { verb: "queues.pause", sql: PAUSE, params, audit });
  }
}

function toQueueRecord(row: Row): QueueRecord {
  return {
    name: String(row.name),
    ready: Number(row.ready),
    waiting: Number(row.waiting),
    running: Number(row.running),
    pausedAt: numberOrNull(row.paused_at),
    pauseNote: textOrNull(row.pause_note),
  };
}
