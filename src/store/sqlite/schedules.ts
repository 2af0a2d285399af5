// Reads and creates schedules and calendars on SQLite; schedule-changes.ts changes existing ones. Every part of a poll
// names one of the three partial indexes of `schedule`: its cost must not grow with the number of idle schedules.

import { OUTCOMES } from "../../schedules/rules/tick.js";
import {
  toBackfillRecord,
  toCalendarRecord,
  toScheduleRecord,
  toScheduleState,
  toScheduleVersion,
  toSeenDefinition,
  toTickRecord,
} from "../schedule-record.js";
import * as schedules from "../schedule-store.js";
import type { SqliteAudit } from "./audit.js";
import type { Row, SqliteFile } from "./connection.js";
import type { SqliteEnqueue } from "./enqueue.js";
import type { SqliteLimits } from "./flow.js";
import type { SqliteLeases } from "./leases.js";
import type { SqlitePause } from "./pause.js";
import { SqliteScheduleChanges } from "./schedule-changes.js";
import type { SqliteSession } from "./session.js";
import { PAUSES } from "./sql/pause.js";

/** The runs of a schedule's `live` that have no outcome yet, as a row source inside of a subquery. */
const LIVE = /* sql */ `
from json_each(s.live) m cross join {run} r on r.id = m.value
where not exists (select 1 from {outcome} o where o.id = r.id)`;

const IS_GATED = /* sql */ `exists (select 1 from {waiting} w where w.id = r.id and w.gate = 'schedule')`;

/** In the words of the index `schedule_look`, as the planner compares them. */
const MAY_NEED_LOOK = "(s.is_gated or s.is_replacing or s.backfill is not null)";

/** Whatever was before the first gated run is gone, whether it ended or was removed. */
const NEEDS_LOOK = /* sql */ `${MAY_NEED_LOOK}
  and case when s.is_replacing or s.backfill is not null then 1
    else coalesce((select ${IS_GATED} ${LIVE} order by m.key limit 1), 1) end`;

/** In the words of the index `schedule_lost`. */
const IS_LOST = /* sql */ `s.next_at is null and not s.is_ended
  and s.paused_at is null and s.broken_at is null and s.deleted_at is null`;

/** What a poll answers about schedules, as members of a JSON object. */
// A case stops at the first that holds; an "or" of subqueries would answer all of them.
export const POLLED_SCHEDULES = /* sql */ `
  'hasDueSchedule', case
    when not :isScheduler then 0
    when exists (select 1 from {schedule} s indexed by {schedule_next} where s.next_at <= :now) then 1
    when exists (select 1 from {schedule} s indexed by {schedule_look} where ${NEEDS_LOOK}) then 1
    else exists (select 1 from {schedule} s indexed by {schedule_lost} where ${IS_LOST})
  end,
  'hasFreeGate', case
    when :isScheduler then 0
    else exists (select 1 from {schedule} s indexed by {schedule_look} where ${NEEDS_LOOK})
  end,
  'hasGated', case
    when exists (select 1 from {waiting} w indexed by {waiting_gate} where w.gate = 'schedule') then 1
    else exists (
      select 1 from {schedule} s indexed by {schedule_look} where ${MAY_NEED_LOOK} and s.backfill is not null)
  end,
  'nextTickAt', case when :isScheduler then
    (select min(s.next_at) from {schedule} s indexed by {schedule_next} where s.next_at > :now)
  end`;

// One JSON text for a row: thirty columns of a thousand schedules take three times as long (measured).
const STATE = /* sql */ `
select json_object(
  'id', s.id, 'name', s.name, 'revision', s.revision, 'version', s.version, 'job', s.job,
  'definition', s.definition, 'input', s.input, 'anchor_at', s.anchor_at, 'cursor_at', s.cursor_at,
  'next_at', s.next_at, 'is_ended', s.is_ended, 'hold_until', s.hold_until, 'hold_run', s.hold_run,
  'last_run', s.last_run, 'last_tick_at', s.last_tick_at, 'is_gated', s.is_gated, 'is_replacing', s.is_replacing,
  'tzdata', s.tzdata, 'began_at', s.began_at, 'paused_at', s.paused_at, 'paused_by', s.paused_by, 'pause_note', s.pause_note,
  'broken_at', s.broken_at, 'broken_error', s.broken_error, 'deleted_at', s.deleted_at, 'app', s.app,
  'source', s.source, 'release', s.release, 'code_hash', s.code_hash, 'created_at', s.created_at,
  'updated_at', s.updated_at,
  'is_job_known', exists (select 1 from {job} j where j.name = s.job),
  'live_runs', (
    select json_group_array(json_array(r.id, r.mode, r.nominal_at, ${IS_GATED}) order by m.key) ${LIVE}),
  'backfill_state', (
    select json_object('id', b.id, 'from_at', b.from_at, 'to_at', b.to_at, 'cursor_at', b.cursor_at, 'total', b.total,
      'made', b.made, 'passed', b.passed, 'is_all', b.is_all) from {backfill} b where b.id = s.backfill),
  'pauses', ${PAUSES}
) as state`;

export const DUE_SCHEDULES = /* sql */ `
with due as materialized (
  select s.id, 0 as part, s.next_at as at from {schedule} s indexed by {schedule_next}
  where s.next_at <= :now order by s.next_at, s.id limit (:limit + 0)
), looking as materialized (
  select s.id, 1 as part, s.id as at from {schedule} s indexed by {schedule_look}
  where ${NEEDS_LOOK} and (s.next_at is null or s.next_at > :now)
  order by s.id limit (:limit + 0) - (select count(*) from due)
), lost as materialized (
  select s.id, 2 as part, s.id as at from {schedule} s indexed by {schedule_lost}
  where ${IS_LOST} and s.id not in (select id from looking)
  order by s.id limit (:limit + 0) - (select count(*) from due) - (select count(*) from looking)
)
${STATE}
from (select * from due union all select * from looking union all select * from lost) c
cross join {schedule} s on s.id = c.id order by c.part, c.at, c.id`;

/** Only those that need a look, whether or not a tick of them is due. */
export const GATED_SCHEDULES = /* sql */ `
${STATE} from {schedule} s indexed by {schedule_look} where ${NEEDS_LOOK} order by s.id limit (:limit + 0)`;

export const SCHEDULE_STATES = /* sql */ `
${STATE} from {schedule} s where s.name in (select value from json_each(:names)) order by s.name`;

// A run that has no outcome and waits nowhere is held: only then the leases are searched. One name is
// a range of the index too; an empty blob sorts after every text.
export const LIST_SCHEDULES = /* sql */ `
select s.*,
  exists (select 1 from {job} j where j.name = s.job) as is_job_known,
  (select json_group_array(r.id order by m.key) ${LIVE}) as live_now,
  case
    when r.id is null then null
    when o.id is not null then o.status
    when y.id is not null or w.id is not null then -1
    else 0
  end as last_status,
  case
    when o.id is not null then coalesce(o.started_at, r.created_at)
    when y.id is not null or w.id is not null then r.created_at
    else coalesce((select k.claimed_at from {lease} k
      where exists (select 1 from json_each(k.ids) h where h.value = r.id)), r.created_at)
  end as last_run_at
from {schedule} s
left join {run} r on r.id = s.last_run
left join {outcome} o on o.id = r.id
left join {ready} y on y.id = r.id
left join {waiting} w on w.id = r.id
where s.deleted_at is null
  and s.name >= coalesce(:name, :after, '') and s.name <= coalesce(:name, x'')
  and (:after is null or s.name > +:after)
  and (:job is null or s.job = :job)
  and (:app is null or s.app = :app)
  and (:state is null or :state = case
    when s.broken_at is not null then 'broken' when s.paused_at is not null then 'paused'
    when s.is_ended then 'ended' else 'active' end)
order by s.name limit (:limit + 0)`;

/** Few ticks have a run that has not ended, so that looking for those among the leases costs little. */
const TICK = /* sql */ `
select s.name as schedule, t.at, t.last_at, t.count, t.reason, t.recorded_at, i.id as recorded_by, t.version, t.run,
  t.evidence,
  coalesce((select o.status from {outcome} o where o.id = t.run),
    case when t.run is null then null
      when exists (select 1 from {lease} k, json_each(k.ids) m where m.value = t.run) then 0
      when exists (select 1 from {run} r where r.id = t.run) then -1 end) as run_status`;
const TICK_WANTED = /* sql */ `
  and (:fromAt is null or t.last_at >= :fromAt)
  and (:outcome is null or t.outcome = :outcome)
  and (:beforeAt is null or (t.at, s.name) < (:beforeAt, :beforeSchedule))`;

export const LIST_TICKS = {
  ofOne: /* sql */ `${TICK}
from {schedule} s cross join {tick} t on t.schedule = s.id left join {instance} i on i.no = t.holder
where s.name = :schedule and t.at <= :untilAt ${TICK_WANTED}
order by t.at desc limit (:limit + 0)`,
  ofAll: /* sql */ `${TICK}
from {tick} t indexed by {tick_at} cross join {schedule} s on s.id = t.schedule
left join {instance} i on i.no = t.holder
where t.at <= :untilAt ${TICK_WANTED}
order by t.at desc, s.name desc limit (:limit + 0)`,
} as const;

export const SCHEDULE_VERSIONS = /* sql */ `
select v.* from {schedule} s cross join {schedule_version} v on v.schedule = s.id
where s.name = :name order by v.version`;

export const DELIVERY = /* sql */ `
select run, input_hash from {delivery} where schedule = :schedule and id = :id`;

export const COMPLETED_TICKS = /* sql */ `
select e.value as at from json_each(:ticks) e
where exists (select 1 from {tick} t cross join {outcome} o on o.id = t.run
    where t.schedule = :schedule and t.at = e.value and o.status = 1)
  or exists (select 1 from {backfill_run} b cross join {outcome} o on o.id = b.run
    where b.schedule = :schedule and b.at = e.value and o.status = 1)
order by e.key`;

export const BACKFILLS = /* sql */ `
select b.* from {schedule} s cross join {backfill} b on b.schedule = s.id
where s.name = :name order by b.created_at desc, b.id desc`;

export const SEEN_DEFINITIONS = /* sql */ `
select hash, release, first_seen_at from {declared} where schedule = :schedule order by first_seen_at, hash`;

const ANNOUNCED_SCHEDULES = /* sql */ `
select distinct e.value as name from {instance} i, json_each(i.schedules) e
where i.app is :app and i.retired_at is null and i.seen_at > :now - max(60000, 3 * i.poll_ms) order by 1`;

const STORED_DECLARED = /* sql */ `
select name, paused_by, paused_at is not null as is_paused from {schedule}
where app is :app and source = :source and deleted_at is null order by name`;

export const SCHEDULES_BY_TZDATA = /* sql */ `
select name from {schedule}
where tzdata <> :not and not is_ended and paused_at is null and broken_at is null and deleted_at is null
order by name limit (:limit + 0)`;

export const CALENDARS = /* sql */ `select * from {calendar} order by name`;
export const PUT_CALENDAR = /* sql */ `
insert into {calendar} (name, rules, version, updated_at, updated_by) values (:name, :rules, 1, :now, :by)
on conflict do update set rules = excluded.rules, version = version + 1, updated_at = excluded.updated_at,
  updated_by = excluded.updated_by`;
export const REMOVE_CALENDAR = /* sql */ `delete from {calendar} where name = :name`;

export class SqliteSchedules implements schedules.ScheduleStore {
  readonly #asker: SqliteSession;
  readonly #file: SqliteFile;
  readonly #changes: SqliteScheduleChanges;
  readonly #audit: SqliteAudit;

  constructor(params: {
    readonly asker: SqliteSession;
    readonly enqueue: SqliteEnqueue;
    readonly leases: SqliteLeases;
    readonly flow: SqliteLimits;
    readonly pause: SqlitePause;
    readonly audit: SqliteAudit;
  }) {
    const { asker, ...parts } = params;
    this.#asker = asker;
    this.#file = asker.file;
    this.#changes = new SqliteScheduleChanges({ file: asker.file, ...parts });
    this.#audit = params.audit;
  }

  async dueSchedules({ limit, only }: { readonly limit: number; readonly only?: "gates" }) {
    return this.#asker.read((now) => {
      const rows =
        only === "gates"
          ? this.#file.all(GATED_SCHEDULES, { limit })
          : this.#file.all(DUE_SCHEDULES, { limit, now });
      return { now, schedules: rows.map(stateOf), hasMore: rows.length >= limit };
    });
  }

  async scheduleStates({ names }: { readonly names: readonly string[] }) {
    return this.#file.read(() => {
      const rows = this.#file.all(SCHEDULE_STATES, { names: JSON.stringify(names) });
      return { now: this.#asker.now(), schedules: rows.map(stateOf) };
    });
  }

  async writeSchedules(params: {
    readonly holder: number | null;
    readonly changes: readonly schedules.ScheduleChange[];
  }): Promise<readonly number[]> {
    return this.#asker.write("writeSchedules", (now) => this.#changes.apply(params, now));
  }

  async createSchedule(params: schedules.NewSchedule): Promise<number | null> {
    return this.#asker.write("createSchedule", (now) => this.#changes.create(params, now));
  }

  async schedules(filter: schedules.ScheduleFilter): Promise<readonly schedules.ScheduleRecord[]> {
    const rows = await this.#all(LIST_SCHEDULES, filter);
    return rows.map((row) => toScheduleRecord({ ...row, live: row.live_now }));
  }

  async ticks(filter: schedules.TickFilter): Promise<readonly schedules.TickRecord[]> {
    const { schedule, fromAt, toAt, outcome, before, limit } = filter;
    const statement = schedule === undefined ? LIST_TICKS.ofAll : LIST_TICKS.ofOne;
    const rows = await this.#all(statement, {
      schedule,
      fromAt,
      // One bound for both, so that the index is entered where the page begins.
      untilAt: Math.min(toAt ?? Number.MAX_SAFE_INTEGER, before?.at ?? Number.MAX_SAFE_INTEGER),
      outcome: outcome && OUTCOMES.indexOf(outcome),
      beforeAt: before?.at,
      beforeSchedule: before?.schedule,
      limit,
    });
    return rows.map(toTickRecord);
  }

  async scheduleVersions(params: { readonly name: string }) {
    return (await this.#all(SCHEDULE_VERSIONS, params)).map(toScheduleVersion);
  }

  async delivery(params: { readonly schedule: number; readonly id: string }) {
    const [row] = await this.#all(DELIVERY, params);
    return row ? { run: String(row.run), inputHash: String(row.input_hash) } : null;
  }

  async completedTicks(params: {
    readonly schedule: number;
    readonly ticks: readonly number[];
  }): Promise<readonly number[]> {
    const { schedule, ticks } = params;
    const rows = await this.#all(COMPLETED_TICKS, { schedule, ticks: JSON.stringify(ticks) });
    return rows.map((row) => Number(row.at));
  }

  async backfills(params: { readonly name: string }) {
    return (await this.#all(BACKFILLS, params)).map(toBackfillRecord);
  }

  async seenDefinitions(params: { readonly schedule: number }) {
    return (await this.#all(SEEN_DEFINITIONS, params)).map(toSeenDefinition);
  }

  async declaredNames({ app }: { readonly app: string | null }) {
    return this.#asker.read((now) => {
      const announced = this.#file.all(ANNOUNCED_SCHEDULES, { app, now });
      const source = schedules.SOURCES.indexOf("code");
      const stored = this.#file.all(STORED_DECLARED, { app, source });
      return {
        announced: announced.map((row) => String(row.name)),
        stored: stored.map((row) => ({
          name: String(row.name),
          pausedBy: row.paused_by as string | null,
          isPaused: row.is_paused === 1,
        })),
      };
    });
  }

  async schedulesByTzdata(params: { readonly not: string; readonly limit: number }) {
    return (await this.#all(SCHEDULES_BY_TZDATA, params)).map((row) => String(row.name));
  }

  async calendars() {
    return (await this.#all(CALENDARS)).map(toCalendarRecord);
  }

  readonly putCalendar: schedules.ScheduleStore["putCalendar"] = async ({ audit, ...params }) => {
    const rules = JSON.stringify(params.rules);
    await this.#audit.change({
      what: "putCalendar",
      audit,
      work: (now) => this.#file.run(PUT_CALENDAR, { ...params, rules, now }),
      isDone: () => true,
    });
  };

  readonly removeCalendar: schedules.ScheduleStore["removeCalendar"] = ({ name, audit }) =>
    this.#audit.change({
      what: "removeCalendar",
      audit,
      work: () => this.#file.run(REMOVE_CALENDAR, { name }) > 0,
      isDone: (isRemoved) => isRemoved,
    });

  #all(statement: string, params: Row = {}): Promise<Row[]> {
    return this.#file.read(() => this.#file.all(statement, params));
  }
}

function stateOf(row: Row): schedules.ScheduleState {
  return toScheduleState(JSON.parse(String(row.state)) as Row);
}
