// Stores runs on PostgreSQL whose keys replace or postpone, or that are limited and have keys: one transaction of
// several statements. All keys are locked first, in sorted order, and limits are touched last: so two batches wait for
// each other at most once, and the run of a key cannot change between the statements.

import type { RunId } from "../../runs/rules/run.js";
import {
  type EnqueueResult,
  firstOfEachKey,
  type KeyHolder,
  lastsColumns,
  layersOf,
  type NewKey,
  type NewRun,
  resultsOf,
} from "../enqueue.js";
import { plainColumn } from "./connection/array.js";
import type { Row } from "./connection/connection.js";
import * as sql from "./sql/enqueue.js";

/** A statement inside of a transaction. */
export type Send = (template: string, params: Row) => Promise<Row[]>;
/** The columns that only a run made by another run has. */
export type Origin = { readonly parent: RunId; readonly batch: number | null };

export type Storing = {
  readonly send: Send;
  /** The commit notifies this channel, unless it is null. */
  readonly channel: string | null;
  /** All or none: one refused run undoes the others. Null: the others are stored anyway. */
  readonly undo: (() => Promise<unknown>) | null;
};

/** A run that is moving between two tables is invisible for a moment. */
const PULLS_MAX = 20;

type RuledRuns = {
  readonly runs: readonly NewRun[];
  /** The same, as the statements take them. */
  readonly rows: readonly Row[];
  /** The transaction continues after this: it touches no flows, which other transactions wait for. */
  readonly isOpen: boolean;
  /** Only if the transaction continues. */
  readonly origin?: Origin;
};

/** Whether storing this run needs more than its row and its key. */
export function hasRules({ flow, key }: NewRun): boolean {
  return flow !== undefined || key?.onDuplicate !== undefined;
}

/** How a layer is written: the texts depend on the transaction and on the maker of the runs. */
type Texts = {
  readonly send: Send;
  readonly change: (runs: string) => Promise<unknown>;
  readonly put: (runs: string) => Promise<unknown>;
};

export async function storeByRules(
  { runs, rows, isOpen, origin }: RuledRuns,
  { send, channel, undo }: Storing,
): Promise<readonly EnqueueResult[]> {
  const rowOf = new Map(rows.map((row) => [String(row.id), row]));
  const put = isOpen ? sql.STORE_RUNS_LATER : sql.STORE_RUNS;
  const texts: Texts = {
    send,
    change: (changed) => send(isOpen ? sql.CHANGE_RUNS_LATER : sql.CHANGE_RUNS, { runs: changed }),
    put: (fresh) =>
      send(origin ? sql.STORE_CHILDREN_LATER : put, { runs: fresh, channel, ...origin }),
  };
  const answers: EnqueueResult[] = [];
  for (const layer of layersOf(runs)) answers.push(...(await storeLayer(layer, rowOf, texts)));
  if (answers.some((answer) => "conflict" in answer)) await undo?.();
  return answers;
}

async function storeLayer(
  layer: readonly NewRun[],
  rowOf: ReadonlyMap<string, Row>,
  { send, change, put }: Texts,
): Promise<readonly EnqueueResult[]> {
  const keyed = [...firstOfEachKey(layer).values()];
  const holders = await takeKeys(keyed, rowOf, send);
  const { changed, holders: settled } = await meetRivals(keyed, holders, send);
  const isStored = new Set(settled.filter(({ id, run }) => id === run).map(({ id }) => id));
  const fresh = layer.filter(({ id, key }) => key === null || isStored.has(id));
  if (changed.length > 0) await change(JSON.stringify(changed));
  if (fresh.length > 0) await put(JSON.stringify(fresh.map(({ id }) => rowOf.get(id))));
  return resultsOf(layer, settled);
}

/** Returns the run of each key; the rows of the keys stay locked until the end of the transaction. */
async function takeKeys(
  keyed: readonly NewRun[],
  rowOf: ReadonlyMap<string, Row>,
  send: Send,
): Promise<readonly KeyHolder[]> {
  if (keyed.length === 0) return [];
  await send(sql.TAKE_KEYS, { runs: JSON.stringify(keyed.map(({ id }) => rowOf.get(id))) });
  const keys = JSON.stringify(keyed.map((run, at) => ({ at, job: run.job, key: run.key?.key })));
  const found = await send(sql.KEY_HOLDERS, { keys });
  return found.map(({ at, run, hash }) => ({
    id: (keyed[Number(at)] as NewRun).id,
    run: String(run),
    inputHash: String(hash),
  }));
}

/** Runs that replace or postpone another one: the other one is changed; if it has begun, it loses its key. */
async function meetRivals(
  keyed: readonly NewRun[],
  holders: readonly KeyHolder[],
  send: Send,
): Promise<{ readonly changed: readonly Row[]; readonly holders: readonly KeyHolder[] }> {
  const runOf = new Map(keyed.map((run) => [run.id, run]));
  const isRival = ({ id, run }: KeyHolder) =>
    id !== run && runOf.get(id)?.key?.onDuplicate !== undefined;
  const rivals = holders.filter(isRival);
  if (rivals.length === 0) return { changed: [], holders };
  const pulled = await pull(
    rivals.map(({ run }) => run),
    send,
  );
  const changed: Row[] = [];
  const keys: Row[] = [];
  const settled = holders.map((holder) => {
    if (!isRival(holder)) return holder;
    const by = runOf.get(holder.id) as NewRun;
    const key = by.key as NewKey;
    const isPulled = pulled.has(holder.run);
    const isReplaced = key.onDuplicate === "replace";
    const run = isPulled ? holder.run : by.id;
    if (isPulled) {
      changed.push({
        id: run,
        job: by.job,
        dueAt: by.dueAt,
        delayMs: by.delayMs,
        maxWaitMs: key.maxWaitMs ?? null,
        input: isReplaced ? by.input : null,
        flow: isReplaced ? by.flow : pulled.get(run),
      });
    }
    if (!isPulled || isReplaced) {
      keys.push({
        id: run,
        job: by.job,
        key: key.key,
        inputHash: key.inputHash,
        ...lastsColumns(key),
        isNew: !isPulled,
      });
    }
    return { id: by.id, run, inputHash: key.inputHash };
  });
  if (keys.length > 0) await send(sql.PASS_KEYS, { keys: JSON.stringify(keys) });
  return { changed, holders: settled };
}

/** Takes runs that have not begun out of their tables; returns the limit that each of them waited under. */
async function pull(
  ids: readonly string[],
  send: Send,
): Promise<ReadonlyMap<string, string | null>> {
  const pulled = new Map<string, string | null>();
  let open = ids;
  for (let tries = 0; open.length > 0 && tries < PULLS_MAX; tries += 1) {
    for (const row of await send(sql.PULL_PENDING, { ids: idArray(open) }))
      pulled.set(String(row.id), row.flow === null ? null : String(row.flow));
    const left = open.filter((id) => !pulled.has(id));
    open =
      left.length === 0
        ? []
        : (await send(sql.UNBEGUN, { ids: idArray(left) })).map(({ id }) => String(id));
  }
  return pulled;
}

/** As a literal: other libraries write arrays in other ways. */
function idArray(ids: readonly string[]): string {
  return plainColumn(ids, (id) => id);
}
