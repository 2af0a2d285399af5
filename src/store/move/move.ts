// Moves everything from SQLite to PostgreSQL: copies it in batches, counts it on both sides, and then raises the new
// database's sequences above every number that was ever given out. The source is only read. After a kill at any moment,
// the same call continues after the last committed batch.

import type { Clock, Random } from "../../shared/ports.js";
import { DAY_MS } from "../postgres/days.js";
import { MoveSource } from "./source.js";
import {
  columnsToMove,
  LEFT_TABLES,
  LOCK_FENCES,
  MOVED_TABLES,
  type MovedColumn,
  type MovedTable,
} from "./tables.js";
import { type MoveState, MoveTarget } from "./target.js";

export type MoveProgress = {
  readonly table: MovedTable;
  readonly moved: number;
  readonly total: number;
};

export type MoveResult =
  | {
      readonly moved: true;
      /** Rows by table, equal on both sides. */
      readonly tables: Readonly<Record<string, number>>;
      /** How many rows existed before this call: it continued an earlier one. */
      readonly resumedAt: number;
      /** Leases that were held at that moment: they expire by the database's clock. */
      readonly heldLeases: number;
      readonly heldLocks: number;
    }
  | { readonly moved: false; readonly reason: "live"; readonly instances: readonly string[] }
  | { readonly moved: false; readonly reason: "not_empty"; readonly tables: readonly string[] }
  | { readonly moved: false; readonly reason: "other_move"; readonly source: string }
  | { readonly moved: false; readonly reason: "already_moved"; readonly source: string }
  | { readonly moved: false; readonly reason: "unknown"; readonly names: readonly string[] }
  | {
      readonly moved: false;
      readonly reason: "counts";
      readonly differences: readonly {
        readonly table: string;
        readonly from: number;
        readonly to: number;
      }[];
    }
  | { readonly moved: false; readonly reason: "stopped"; readonly rows: number };

type MoveParams = {
  readonly file: string;
  readonly url: string;
  readonly schema: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Copy even while instances are live; their later changes are not copied. */
  readonly evenIfLive: boolean;
  readonly onProgress: (progress: MoveProgress) => void;
  readonly signal?: AbortSignal | undefined;
};

/** Rows of one transaction; fewer where they are long. */
const BATCH = 2_000;
/** No partitions are made for older days: their rows are pruned soon. */
const DAYS_MAX = 60;

export async function moveToPostgres(params: MoveParams): Promise<MoveResult> {
  const source = new MoveSource(params);
  await source.open();
  try {
    const target = await MoveTarget.open(params);
    try {
      return await move(params, source, target);
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

async function move(
  params: MoveParams,
  source: MoveSource,
  target: MoveTarget,
): Promise<MoveResult> {
  const { file, evenIfLive, onProgress, signal } = params;
  const shapes = new Map<MovedTable, readonly MovedColumn[]>();
  const unknown = source
    .tables()
    .filter((name) => !isListed(name))
    .map(String);
  for (const table of MOVED_TABLES) {
    const { columns } = source.shape(table);
    const answer = columnsToMove(table, columns, await target.columns(table));
    shapes.set(table, answer.columns);
    unknown.push(...answer.unknown);
  }
  if (unknown.length > 0) return { moved: false, reason: "unknown", names: unknown };

  const found = await target.found();
  if (found && found.source !== file)
    return { moved: false, reason: "other_move", source: found.source };
  if (found?.hasEnded) return { moved: false, reason: "already_moved", source: found.source };
  if (!found) {
    const filled = [];
    for (const table of MOVED_TABLES) if (!(await target.isEmpty(table))) filled.push(table);
    if (filled.length > 0) return { moved: false, reason: "not_empty", tables: filled };
  }
  const instances = [
    ...source.liveInstances(),
    // Instances that the move itself has copied do not count.
    ...(await target.liveInstances()).filter((id) => !source.knowsInstance(id)),
  ];
  if (instances.length > 0 && !evenIfLive) return { moved: false, reason: "live", instances };

  const totals = source.totals();
  const total = [...totals.values()].reduce((sum, count) => sum + count, 0);
  if (!found) {
    await target.makeDays(daysOf(source));
    await target.begin(file);
  }
  let state: MoveState = found?.state ?? {};
  let moved = Object.values(state).reduce((sum, each) => sum + each.moved, 0);
  const resumedAt = moved;
  for (const table of MOVED_TABLES) {
    onProgress({ table, moved, total });
    for (;;) {
      if (signal?.aborted) return { moved: false, reason: "stopped", rows: moved };
      const before = state[table] ?? { moved: 0, cursor: null };
      const { rows, cursor } = source.page({ table, after: before.cursor, limit: BATCH });
      if (rows.length === 0) break;
      const next = { ...state, [table]: { moved: before.moved + rows.length, cursor } };
      await target.write({ table, columns: shapes.get(table) ?? [], rows, state: next });
      state = next;
      moved += rows.length;
      onProgress({ table, moved, total });
      if (rows.length < BATCH) break;
    }
  }
  const differences = [];
  for (const [table, from] of totals) {
    const to = await target.count(table);
    if (to !== from) differences.push({ table, from, to });
  }
  if (differences.length > 0) return { moved: false, reason: "counts", differences };
  await raiseSequences(source, target, shapes);
  await target.end(state);
  return {
    moved: true,
    tables: Object.fromEntries(totals),
    resumedAt,
    heldLeases: totals.get("lease") ?? 0,
    heldLocks: totals.get("lock") ?? 0,
  };
}

function isListed(table: string): boolean {
  return (MOVED_TABLES as readonly string[]).includes(table) || table in LEFT_TABLES;
}

/** No number is given out twice, and new fences are larger than every earlier one. */
async function raiseSequences(
  source: MoveSource,
  target: MoveTarget,
  shapes: ReadonlyMap<MovedTable, readonly MovedColumn[]>,
): Promise<void> {
  for (const [table, columns] of shapes) {
    for (const { name, isIdentity } of columns) {
      const last = isIdentity ? source.largest(table, name) : 0;
      if (last > 0) await target.raiseIdentity(table, name, last);
    }
  }
  const { sequence, tables } = LOCK_FENCES;
  const last = Math.max(...tables.map((table) => source.largest(table, "fence")));
  if (last > 0) await target.raiseSequence(sequence, last);
}

/** The days that have rows of history, the newest of them. */
function daysOf(source: MoveSource): { runs: number[]; ticks: number[] } {
  const { first_run, last_run, first_tick, last_tick } = source.days();
  const dayOfRun = (id: unknown) =>
    Math.floor(Number.parseInt(String(id).replaceAll("-", "").slice(0, 12), 16) / DAY_MS);
  const dayOfTick = (at: unknown) => Math.floor(Number(at) / DAY_MS);
  return {
    runs: first_run === null ? [] : range(dayOfRun(first_run), dayOfRun(last_run)),
    ticks: first_tick === null ? [] : range(dayOfTick(first_tick), dayOfTick(last_tick)),
  };
}

function range(from: number, to: number): number[] {
  const first = Math.max(from, to - DAYS_MAX + 1);
  return Array.from({ length: Math.max(0, to - first + 1) }, (_, at) => first + at);
}
