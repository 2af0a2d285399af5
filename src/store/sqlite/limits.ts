// Applies limits on SQLite, inside write transactions: which runs wait in line, which are let through, and how a flow
// changes when a run leaves it. PostgreSQL does the same in store/postgres/sql/limits.ts.

import type { RunId } from "../../runs/rules/run.js";
import { isLimited, type Limits, limitKeyOf, WHOLE_JOB } from "../../worker/rules/limits.js";
import type { ExchangeParams } from "../claims.js";
import { toLimits } from "../jobs.js";
import { COUNTERS } from "../rows.js";
import type { Row, SqliteFile } from "./connection/connection.js";
import type { Pending } from "./settlement-rows.js";

/**
 * `l` is a lane, `q` its queue; a job that is named twice has its lanes twice. From the names to the lanes: looking
 * each lane up among the names takes half as long again (measured).
 */
export const LANES_OF_JOBS = /* sql */ `
json_each(:jobs) v cross join {lane} l on l.job = v.value left join {queue} q on q.name = l.queue`;

export const MAY_CLAIM = /* sql */ `
(:queues is null or l.queue in (select value from json_each(:queues))) and q.paused_at is null`;

/** Flows are made when they are first needed; the flow of the whole job is made with any other. */
const ENSURE_FLOW = /* sql */ `
insert into {flow} (job, key, used, open_at) values (:job, :key, 0, 0)
on conflict (job, key) do update set used = used returning id`;

/** If runs are waiting already, new ones change nothing. */
const OPEN_LINE = /* sql */ `
insert into {flow_line} (flow, lane, suspect, look_at) values (:flow, :lane, :suspect, :now)
on conflict do update set look_at = coalesce(look_at, excluded.look_at)`;

const STAND_NEW_RUN = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect, gate, flow)
values (:row ->> 0, :row ->> 1, :row ->> 2, :row ->> 3, :row ->> 4, 0, 0, 0, 0, 0, 0, :row ->> 5, :row ->> 6)`;

const LEAVE_FLOW = /* sql */ `delete from {flow_run} where run = :run returning flow, held`;
const FLOW_OF_RUN = /* sql */ `
select p.flow, r.lane, exists (
  select 1 from {lane} l join {job} j on j.name = l.job where l.id = r.lane and j.rate_limit is not null) as is_rated
from {flow_run} p join {run} r on r.id = p.run where p.run = :run`;
const FREE_FLOW = /* sql */ `update {flow} set open_at = 0 where id = :flow`;
const FREE_LINES = /* sql */ `
update {flow_line} set look_at = :now where flow = :flow and look_at is not null`;

const KEEP_FLOW = /* sql */ `update {waiting} set flow = :flow where id = :run`;
const MARK_LIMITED = /* sql */ `update {ready} set limited = 1 where id = :run`;
/** From ready back to the line. */
const STAND_AGAIN = /* sql */ `
insert into {waiting} (id, wake_at, lane, policy, priority, ${COUNTERS}, suspect, gate, flow)
select y.id, :now, y.lane, y.policy, r.priority, y.attempt, y.losses, y.refunds, y.laters, y.extra, y.suspect, 'flow', :flow
from {ready} y cross join {run} r on r.id = y.id where y.id = :run
returning lane, suspect`;
export const DELETE_READY = /* sql */ `delete from {ready} where id = :run`;
/** From behind a gate, or from the future, to the line. */
const STAND_NOW = /* sql */ `
update {waiting} set gate = 'flow', asleep_at = null, wake_at = min(wake_at, :now), flow = :flow where id = :run returning lane, suspect`;

const HAS_LIMITED_JOBS = /* sql */ `
select 1 from {job} where concurrency_limit is not null or rate_limit is not null limit 1`;

const LIMITS = "j.concurrency_limit, j.concurrency_key, j.rate_limit, j.rate_per_ms, j.rate_key";

/** Of these runs, the ones whose job is limited. */
const LIMITED_AMONG = /* sql */ `
select r.id, r.input, l.job, ${LIMITS}
from json_each(:ids) m cross join {run} r on r.id = m.value
join {lane} l on l.id = r.lane join {job} j on j.name = l.job
where j.concurrency_limit is not null or j.rate_limit is not null`;

const DUE_LIMITED = /* sql */ `
select id, lane, flow, suspect from (
  select * from {waiting} where gate is null and wake_at <= :now order by wake_at, id limit (:limit + 0))
where flow is not null`;

const HAS_LINES = /* sql */ `exists (select 1 from {flow_line} a where a.look_at is not null)`;

/** Whether any run waits in a line that may be served: most of the time there is none. */
const ANY_LINE = /* sql */ `select 1 from {flow_line} where look_at is not null limit 1`;

/** The lines that are worth reading, those that waited longest first. */
export const LINES = /* sql */ `
select n.flow, n.lane, n.look_at, r.id as root, f.key, ${LIMITS}
from {lane} l
join {flow} r on r.job = l.job and r.key = '' and r.open_at <= :now
join {job} j on j.name = l.job
left join {queue} q on q.name = l.queue
cross join {flow_line} n on n.lane = l.id and n.suspect = :suspect and n.look_at <= :now
cross join {flow} f on f.id = n.flow
where l.job in (select value from json_each(:jobs)) and ${MAY_CLAIM}
order by n.look_at, n.flow limit (:limit + 0)`;

const HELD_COUNT = /* sql */ `select count(*) as held from {flow_run} where held = :flow`;
const PASS_TURNS = /* sql */ `delete from {flow_turn} where flow = :flow and at <= :before returning runs`;
const USED = /* sql */ `select used from {flow} where id = :flow`;
const SET_USED = /* sql */ `update {flow} set used = used + :runs where id = :flow`;
const FIRST_TURN = /* sql */ `select min(at) as at from {flow_turn} where flow = :flow`;
const TAKE_TURNS = /* sql */ `
insert into {flow_turn} (flow, at, runs) values (:flow, :now, :runs)
on conflict do update set runs = runs + excluded.runs`;

export const STANDING = /* sql */ `
select id, wake_at - priority * 60000 as sort_at, policy, ${COUNTERS} from {waiting}
where flow = :flow and lane = :lane and suspect = :suspect and gate = 'flow'
order by wake_at - priority * 60000, id limit (:limit + 0)`;

const DELETE_STANDING = /* sql */ `
delete from {waiting} where id in (select value from json_each(:ids))`;
const LET_THROUGH = /* sql */ `
insert into {flow_run} (run, flow, held) select value, :flow, :held from json_each(:ids)`;
const SET_LOOK = /* sql */ `
update {flow_line} set look_at = :lookAt where flow = :flow and lane = :lane and suspect = :suspect`;
const SET_OPEN = /* sql */ `update {flow} set open_at = :openAt where id = :flow`;

/** Whether a lane of these jobs has a line that is worth reading. */
export const HAS_LINE = (suspect: 0 | 1) => /* sql */ `
${HAS_LINES} and exists (
  select 1 from ${LANES_OF_JOBS} cross join {flow} r on r.job = l.job and r.key = '' and r.open_at <= :now
  where ${MAY_CLAIM} and exists (select 1 from {flow_line} n where n.lane = l.id and n.suspect = ${suspect} and n.look_at <= :now))`;

const REOPEN_FLOWS = /* sql */ `update {flow} set open_at = 0 where job = :name`;
const REOPEN_LINES = /* sql */ `
update {flow_line} set look_at = :now
where look_at is not null and flow in (select id from {flow} where job = :name)`;

/** Flows without waiting and counting runs; flows of whole jobs stay, because they are few. */
const IDLE_FLOWS = /* sql */ `
select f.id from {flow} f
where f.key <> ''
  and not exists (select 1 from {waiting} w where w.flow = f.id)
  and not exists (select 1 from {flow_run} r where r.flow = f.id)
  and not exists (
    select 1 from {flow_turn} t where t.flow = f.id
      and t.at > :now - coalesce((select j.rate_per_ms from {job} j where j.name = f.job), 0))
limit (:limit + 0)`;
export const PRUNE_FLOWS = [
  /* sql */ `delete from {flow_turn} where flow in (select value from json_each(:ids))`,
  /* sql */ `delete from {flow_line} where flow in (select value from json_each(:ids))`,
  /* sql */ `delete from {flow} where id in (select value from json_each(:ids))`,
] as const;

/** A full flow is read again when one of its runs leaves it, at the latest after this time. */
const FULL_LOOK_MS = 60_000;
/** How many more lines than requested runs a claim reads, as some lines may be empty. */
const LINES_MORE = 50;

/** A run that was let through, with the columns that a lease needs: policy and counters. */
export type LetThrough = {
  readonly lane: number;
  readonly row: readonly [RunId, ...number[]];
};

/** A run with its table among the pending ones. */
type Placed = {
  readonly id: RunId;
  readonly dueAt: number;
  readonly lane: number;
  readonly policy: number;
  readonly priority: number;
};

/** The remaining capacity of a limit while a claim goes through the lines. */
type Room = { free: number; readonly freeAt: number };

type Line = {
  readonly flow: number;
  readonly lane: number;
  readonly held: number | null;
  readonly rate: number | null;
  readonly heldRoom: Room | null;
  readonly rateRoom: Room | null;
  readonly standing: Row[];
  readonly taken: Row[];
};

export class SqliteLimits {
  readonly #file: SqliteFile;

  constructor(file: SqliteFile) {
    this.#file = file;
  }

  /** The number of a flow, which is made if it does not exist. */
  flow(job: string, key: string): number {
    if (key !== WHOLE_JOB) this.#file.get(ENSURE_FLOW, { job, key: WHOLE_JOB });
    return Number(this.#file.get(ENSURE_FLOW, { job, key })?.id);
  }

  /** A run of a limited job joins the line if it is due; otherwise it waits for its time. */
  place(run: Placed & { readonly flow: number }, now: number): void {
    const { id, dueAt, lane, policy, priority, flow } = run;
    const isDue = dueAt <= now;
    if (isDue) this.#file.run(OPEN_LINE, { flow, lane, suspect: 0, now });
    const row = [id, dueAt, lane, policy, priority, isDue ? "flow" : null, flow];
    this.#file.run(STAND_NEW_RUN, { row: JSON.stringify(row) });
  }

  /** Of these runs, the flows of those whose job is limited. */
  flowsOf(ids: readonly RunId[]): ReadonlyMap<RunId, number> {
    if (!this.#file.get(HAS_LIMITED_JOBS)) return new Map();
    const rows = this.#file.all(LIMITED_AMONG, { ids: JSON.stringify(ids) });
    return new Map(
      rows.map((row) => [
        String(row.id),
        this.flow(String(row.job), limitKeyOf(toLimits(row), String(row.input))),
      ]),
    );
  }

  /** The flow that let a run through; null if none did. */
  flowOf(run: RunId): number | null {
    const found = this.#file.get(FLOW_OF_RUN, { run });
    return found ? Number(found.flow) : null;
  }

  /** A run in `waiting` joins the line now. */
  stand(run: RunId, flow: number, now: number): void {
    const row = this.#file.get(STAND_NOW, { run, flow, now });
    if (row) this.#file.run(OPEN_LINE, { flow, ...row, now });
  }

  /** A run in `waiting` that will join the line later. */
  keep(run: RunId, flow: number): void {
    this.#file.run(KEEP_FLOW, { run, flow });
  }

  /** Moves the limited runs among the due ones to their lines; the others are not touched. */
  promote({ limit }: { readonly limit: number }, now: number): number {
    const due = this.#file.all(DUE_LIMITED, { limit, now });
    for (const { id, flow } of due) this.stand(String(id), Number(flow), now);
    return due.length;
  }

  /** For runs that ended: releases their capacity. */
  leave(runs: readonly RunId[], now: number): void {
    for (const run of runs) {
      const left = this.#file.get(LEAVE_FLOW, { run });
      if (left?.held == null) continue;
      this.#file.run(FREE_FLOW, { flow: left.held });
      this.#file.run(FREE_LINES, { flow: left.held, now });
    }
  }

  /**
   * For limited runs that were put back to `ready` or `waiting`. A run that is ready again keeps its capacity, but
   * under a rate every attempt joins the line; a run that waits for its time releases it.
   */
  return(pending: readonly Pending[], now: number): void {
    for (const [run, delayMs] of pending) {
      const found = this.#file.get(FLOW_OF_RUN, { run });
      if (!found) continue;
      const flow = Number(found.flow);
      if (delayMs > 0) {
        this.keep(run, flow);
        this.leave([run], now);
      } else if (found.is_rated) {
        const line = this.#file.get(STAND_AGAIN, { run, flow, now }) as Row;
        this.#file.run(DELETE_READY, { run });
        this.leave([run], now);
        this.#file.run(OPEN_LINE, { flow, ...line, now });
      } else this.#file.run(MARK_LIMITED, { run });
    }
  }

  /** Lets runs through. Lines take turns: the first run of each before the second of any. */
  claim(
    params: Pick<ExchangeParams, "jobs" | "queues" | "limit" | "wantsSuspect">,
    now: number,
  ): { readonly taken: LetThrough[]; readonly freeAt: number | null } {
    if (!this.#file.get(ANY_LINE)) return { taken: [], freeAt: null };
    const suspect = params.wantsSuspect ? 1 : 0;
    const limit = params.wantsSuspect ? Math.min(params.limit, 1) : params.limit;
    const rooms = new Map<string, Room>();
    const lines = this.#file
      .all(LINES, {
        suspect,
        now,
        jobs: JSON.stringify(params.jobs),
        queues: params.queues && JSON.stringify(params.queues),
        limit: limit + LINES_MORE,
      })
      .map((row) => this.#line(row, { rooms, suspect, limit, now }));
    takeInTurn(lines, limit);
    for (const line of lines) this.#letThrough(line, { suspect, now });
    const soonest = Math.min(
      ...lines.map(({ rateRoom, standing, taken }) =>
        rateRoom && rateRoom.free <= 0 && standing.length > taken.length
          ? rateRoom.freeAt
          : Infinity,
      ),
    );
    return {
      taken: lines.flatMap(({ lane, taken }) => taken.map((row) => ({ lane, row: leaseRow(row) }))),
      freeAt: Number.isFinite(soonest) ? soonest : null,
    };
  }

  #line(
    row: Row,
    context: { rooms: Map<string, Room>; suspect: number; limit: number; now: number },
  ): Line {
    const { rooms, suspect, limit, now } = context;
    const flow = Number(row.flow);
    const lane = Number(row.lane);
    const root = Number(row.root);
    const limits = toLimits(row);
    const held = limits.concurrency && (limits.concurrency.key === null ? root : flow);
    const rate = limits.rate && (limits.rate.key === null ? root : flow);
    const heldRoom =
      held === null ? null : this.#heldRoom(held, Number(row.concurrency_limit), rooms);
    const rateRoom =
      rate === null || limits.rate === null
        ? null
        : this.#rateRoom(rate, limits.rate, { rooms, now });
    const free = Math.max(0, Math.min(limit, heldRoom?.free ?? limit, rateRoom?.free ?? limit));
    const standing = this.#file.all(STANDING, { flow, lane, suspect, limit: free + 1 });
    return { flow, lane, held, rate, heldRoom, rateRoom, standing, taken: [] };
  }

  #heldRoom(flow: number, limit: number, rooms: Map<string, Room>): Room {
    const known = rooms.get(`held ${flow}`);
    if (known) return known;
    const held = Number(this.#file.get(HELD_COUNT, { flow })?.held);
    const room = { free: limit - held, freeAt: 0 };
    rooms.set(`held ${flow}`, room);
    return room;
  }

  #rateRoom(
    flow: number,
    { limit, perMs }: { readonly limit: number; readonly perMs: number },
    { rooms, now }: { rooms: Map<string, Room>; now: number },
  ): Room {
    const known = rooms.get(`rate ${flow}`);
    if (known) return known;
    const passed = this.#file
      .all(PASS_TURNS, { flow, before: now - perMs })
      .reduce((sum, { runs }) => sum + Number(runs), 0);
    if (passed > 0) this.#file.run(SET_USED, { flow, runs: -passed });
    const used = Number(this.#file.get(USED, { flow })?.used);
    const firstAt = this.#file.get(FIRST_TURN, { flow })?.at;
    const room = { free: limit - used, freeAt: Number(firstAt ?? now) + perMs };
    rooms.set(`rate ${flow}`, room);
    return room;
  }

  #letThrough(line: Line, { suspect, now }: { suspect: number; now: number }): void {
    const { flow, lane, held, rate, heldRoom, rateRoom, standing, taken } = line;
    if (taken.length > 0) {
      const ids = JSON.stringify(taken.map(({ id }) => id));
      this.#file.run(DELETE_STANDING, { ids });
      this.#file.run(LET_THROUGH, { ids, flow, held });
      if (rate !== null) {
        this.#file.run(TAKE_TURNS, { flow: rate, runs: taken.length, now });
        this.#file.run(SET_USED, { flow: rate, runs: taken.length });
      }
    }
    const isFull = heldRoom !== null && heldRoom.free <= 0;
    const isUsedUp = rateRoom !== null && rateRoom.free <= 0;
    const own = (whose: number | null) => whose === flow;
    let lookAt: number | null = now;
    if (standing.length <= taken.length) lookAt = null;
    else if (isFull && own(held)) lookAt = now + FULL_LOOK_MS;
    else if (isUsedUp && own(rate)) lookAt = rateRoom.freeAt;
    this.#file.run(SET_LOOK, { flow, lane, suspect, lookAt });
    // The limit of a whole job closes all of its lines.
    if (isFull && held !== null && !own(held))
      this.#file.run(SET_OPEN, { flow: held, openAt: now + FULL_LOOK_MS });
    else if (isUsedUp && rate !== null && !own(rate))
      this.#file.run(SET_OPEN, { flow: rate, openAt: rateRoom.freeAt });
  }

  /** A changed limit applies to runs that begin from now on: every line of the job is read again. */
  reopen(name: string, limits: Limits | undefined, now: number): void {
    if (limits && isLimited(limits)) this.flow(name, WHOLE_JOB);
    this.#file.run(REOPEN_FLOWS, { name });
    this.#file.run(REOPEN_LINES, { name, now });
  }

  prune(limit: number, now: number): number {
    const idle = this.#file.all(IDLE_FLOWS, { limit, now }).map(({ id }) => id);
    if (idle.length === 0) return 0;
    const ids = JSON.stringify(idle);
    for (const statement of PRUNE_FLOWS) this.#file.run(statement, { ids });
    return idle.length;
  }
}

function takeInTurn(lines: readonly Line[], limit: number): void {
  let left = limit;
  for (let isOn = true; isOn && left > 0; ) {
    isOn = false;
    const turn = lines.flatMap((line) => {
      const next = line.standing[line.taken.length];
      return next ? [{ line, next }] : [];
    });
    turn.sort((a, b) => Number(a.next.sort_at) - Number(b.next.sort_at));
    for (const { line, next } of turn) {
      const hasRoom = (line.heldRoom?.free ?? 1) > 0 && (line.rateRoom?.free ?? 1) > 0;
      if (left === 0 || !hasRoom) continue;
      line.taken.push(next);
      if (line.heldRoom) line.heldRoom.free -= 1;
      if (line.rateRoom) line.rateRoom.free -= 1;
      left -= 1;
      isOn = true;
    }
  }
}

function leaseRow(row: Row): readonly [RunId, ...number[]] {
  const { sort_at, policy, attempt, losses, refunds, laters, extra } = row;
  const numbers = [sort_at, policy, attempt, losses, refunds, laters, extra].map(Number);
  const limited = 1;
  return [String(row.id), ...numbers, limited];
}
