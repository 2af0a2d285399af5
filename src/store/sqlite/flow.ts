// Limits on SQLite, inside of write transactions: who stands in line, who is let through, and what
// becomes of a flow when a run leaves it. PostgreSQL decides the same in store/postgres/sql/flow.ts.

import type { RunId } from "../../runs/rules/run.js";
import { flowKeyOf, isLimited, type Limits, WHOLE_JOB } from "../../worker/rules/limits.js";
import { toLimits } from "../record.js";
import type * as store from "../store.js";
import type { Pending } from "./books.js";
import type { Row, SqliteFile } from "./connection.js";
import * as sql from "./sql/flow.js";

/** A flow that is full is looked at again when one of its runs leaves it, at the latest after this. */
const FULL_LOOK_MS = 60_000;
/** How many more lines than wanted runs a claim looks at, as some may turn out to be empty. */
const LINES_MORE = 50;

/** A run that was let through, with what a lease needs of it: policy and counters. */
export type LetThrough = {
  readonly lane: number;
  readonly row: readonly [RunId, ...number[]];
};

/** A run with its place among the pending ones. */
type Placed = {
  readonly id: RunId;
  readonly dueAt: number;
  readonly lane: number;
  readonly policy: number;
  readonly priority: number;
};

/** What is left of a limit while a claim goes through the lines. */
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

  /** The number of a flow, which is made where there is none. */
  flow(job: string, key: string): number {
    if (key !== WHOLE_JOB) this.#file.get(sql.ENSURE_FLOW, { job, key: WHOLE_JOB });
    return Number(this.#file.get(sql.ENSURE_FLOW, { job, key })?.id);
  }

  /** A run of a limited job stands in line if it is due; else it waits for its time. */
  place(run: Placed & { readonly flow: number }, now: number): void {
    const { id, dueAt, lane, policy, priority, flow } = run;
    const isDue = dueAt <= now;
    if (isDue) this.#file.run(sql.OPEN_LINE, { flow, lane, suspect: 0, now });
    const row = [id, dueAt, lane, policy, priority, isDue ? "flow" : null, flow];
    this.#file.run(sql.STAND_NEW_RUN, { row: JSON.stringify(row) });
  }

  /** New runs of limited jobs. */
  add(
    runs: readonly (Placed & { readonly job: string; readonly key: string })[],
    now: number,
  ): void {
    for (const { job, key, ...run } of runs) this.place({ ...run, flow: this.flow(job, key) }, now);
  }

  /** Of these runs, the flows of those whose job is limited. */
  flowsOf(ids: readonly RunId[]): ReadonlyMap<RunId, number> {
    if (!this.#file.get(sql.HAS_LIMITED_JOBS)) return new Map();
    const rows = this.#file.all(sql.LIMITED_AMONG, { ids: JSON.stringify(ids) });
    return new Map(
      rows.map((row) => [
        String(row.id),
        this.flow(String(row.job), flowKeyOf(toLimits(row), String(row.input))),
      ]),
    );
  }

  /** The flow that let a run through; null where none did. */
  flowOf(run: RunId): number | null {
    const found = this.#file.get(sql.FLOW_OF_RUN, { run });
    return found ? Number(found.flow) : null;
  }

  /** A run in `waiting` stands in line from now on. */
  stand(run: RunId, flow: number, now: number): void {
    const row = this.#file.get(sql.STAND_NOW, { run, flow, now });
    if (row) this.#file.run(sql.OPEN_LINE, { flow, ...row, now });
  }

  /** A run in `waiting` that will stand in line later. */
  keep(run: RunId, flow: number): void {
    this.#file.run(sql.KEEP_FLOW, { run, flow });
  }

  /** Limited runs among those that are due, moved to their lines; the rest is not looked at. */
  promote({ limit }: { readonly limit: number }, now: number): number {
    const due = this.#file.all(sql.DUE_LIMITED, { limit, now });
    for (const { id, flow } of due) this.stand(String(id), Number(flow), now);
    return due.length;
  }

  /** Runs that ended: what they held is free. */
  leave(runs: readonly RunId[], now: number): void {
    for (const run of runs) {
      const left = this.#file.get(sql.LEAVE_FLOW, { run });
      if (left?.held == null) continue;
      this.#file.run(sql.FREE_FLOW, { flow: left.held });
      this.#file.run(sql.FREE_LINES, { flow: left.held, now });
    }
  }

  /**
   * Limited runs that were put back to `ready` or `waiting`. What is ready again keeps what it holds,
   * but under a rate every attempt stands in line; what waits for its time gives it back.
   */
  return(pending: readonly Pending[], now: number): void {
    for (const [run, delayMs] of pending) {
      const found = this.#file.get(sql.FLOW_OF_RUN, { run });
      if (!found) continue;
      const flow = Number(found.flow);
      if (delayMs > 0) {
        this.keep(run, flow);
        this.leave([run], now);
      } else if (found.is_rated) {
        const line = this.#file.get(sql.STAND_AGAIN, { run, flow, now }) as Row;
        this.#file.run(sql.DELETE_READY, { run });
        this.leave([run], now);
        this.#file.run(sql.OPEN_LINE, { flow, ...line, now });
      } else this.#file.run(sql.MARK_LIMITED, { run });
    }
  }

  /** Lets runs through. Lines are served in turn: the first of each before the second of any. */
  claim(
    params: Pick<store.ExchangeParams, "jobs" | "queues" | "limit" | "wantsSuspect">,
    now: number,
  ): { readonly taken: LetThrough[]; readonly freeAt: number | null } {
    if (!this.#file.get(sql.ANY_LINE)) return { taken: [], freeAt: null };
    const suspect = params.wantsSuspect ? 1 : 0;
    const limit = params.wantsSuspect ? Math.min(params.limit, 1) : params.limit;
    const rooms = new Map<string, Room>();
    const lines = this.#file
      .all(sql.LINES, {
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
    const standing = this.#file.all(sql.STANDING, { flow, lane, suspect, limit: free + 1 });
    return { flow, lane, held, rate, heldRoom, rateRoom, standing, taken: [] };
  }

  #heldRoom(flow: number, limit: number, rooms: Map<string, Room>): Room {
    const known = rooms.get(`held ${flow}`);
    if (known) return known;
    const held = Number(this.#file.get(sql.HELD_COUNT, { flow })?.held);
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
      .all(sql.PASS_TURNS, { flow, before: now - perMs })
      .reduce((sum, { runs }) => sum + Number(runs), 0);
    if (passed > 0) this.#file.run(sql.SET_USED, { flow, runs: -passed });
    const used = Number(this.#file.get(sql.USED, { flow })?.used);
    const firstAt = this.#file.get(sql.FIRST_TURN, { flow })?.at;
    const room = { free: limit - used, freeAt: Number(firstAt ?? now) + perMs };
    rooms.set(`rate ${flow}`, room);
    return room;
  }

  #letThrough(line: Line, { suspect, now }: { suspect: number; now: number }): void {
    const { flow, lane, held, rate, heldRoom, rateRoom, standing, taken } = line;
    if (taken.length > 0) {
      const ids = JSON.stringify(taken.map(({ id }) => id));
      this.#file.run(sql.DELETE_STANDING, { ids });
      this.#file.run(sql.LET_THROUGH, { ids, flow, held });
      if (rate !== null) {
        this.#file.run(sql.TAKE_TURNS, { flow: rate, runs: taken.length, now });
        this.#file.run(sql.SET_USED, { flow: rate, runs: taken.length });
      }
    }
    const isFull = heldRoom !== null && heldRoom.free <= 0;
    const isUsedUp = rateRoom !== null && rateRoom.free <= 0;
    const own = (whose: number | null) => whose === flow;
    let lookAt: number | null = now;
    if (standing.length <= taken.length) lookAt = null;
    else if (isFull && own(held)) lookAt = now + FULL_LOOK_MS;
    else if (isUsedUp && own(rate)) lookAt = rateRoom.freeAt;
    this.#file.run(sql.SET_LOOK, { flow, lane, suspect, lookAt });
    // What a whole job shares closes it for all of its lines.
    if (isFull && held !== null && !own(held))
      this.#file.run(sql.SET_OPEN, { flow: held, openAt: now + FULL_LOOK_MS });
    else if (isUsedUp && rate !== null && !own(rate))
      this.#file.run(sql.SET_OPEN, { flow: rate, openAt: rateRoom.freeAt });
  }

  /** A changed limit counts for what begins from now on: every line of the job is looked at again. */
  reopen(name: string, limits: Limits | undefined, now: number): void {
    if (limits && isLimited(limits)) this.flow(name, WHOLE_JOB);
    this.#file.run(sql.REOPEN_FLOWS, { name });
    this.#file.run(sql.REOPEN_LINES, { name, now });
  }

  prune(limit: number, now: number): number {
    const idle = this.#file.all(sql.IDLE_FLOWS, { limit, now }).map(({ id }) => id);
    if (idle.length === 0) return 0;
    const ids = JSON.stringify(idle);
    for (const statement of sql.PRUNE_FLOWS) this.#file.run(statement, { ids });
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
