// Storing runs on PostgreSQL whose keys replace or postpone, or that are limited and have keys: one
// transaction of several statements. All keys are locked first and in sorted order, limits are touched
// last: so two batches wait for one another at most, and what a key stands for cannot change between.

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
import { plainColumn } from "./array.js";
import type { Row } from "./connection.js";
import * as sql from "./sql/enqueue.js";

/** A statement inside of a transaction. */
export type Send = (template: string, params: Row) => Promise<Row[]>;
/** What a run that another run made has more than others. */
export type Origin = { readonly parent: RunId; readonly batch: number | null };

export type Storing = {
  readonly ask: Send;
  /** Told by the commit, unless null. */
  readonly channel: string | null;
  /** All or none: one that is refused undoes the others. Null: they are stored all the same. */
  readonly undo: (() => Promise<unknown>) | null;
};

/** A run that moves between two places is out of sight for a moment. */
const PULLS_MAX = 20;

type RuledRuns = {
  readonly runs: readonly NewRun[];
  /** The same, as the statements take them. */
  readonly rows: readonly Row[];
  /** The transaction goes on after this: flows, which others wait for, are not touched in it. */
  readonly isOpen: boolean;
  /** Only where the transaction goes on. */
  readonly origin?: Origin;
};

/** Whether more than its place and its key has to be looked at when a run is stored. */
export function hasRules({ flow, key }: NewRun): boolean {
  return flow !== undefined || key?.onDuplicate !== undefined;
}

/** How a layer is written: the texts depend on the transaction and on who makes the runs. */
type Texts = {
  readonly ask: Send;
  readonly change: (runs: string) => Promise<unknown>;
  readonly put: (runs: string) => Promise<unknown>;
};

export async function storeByRules(
  { runs, rows, isOpen, origin }: RuledRuns,
  { ask, channel, undo }: Storing,
): Promise<readonly EnqueueResult[]> {
  const rowOf = new Map(rows.map((row) => [String(row.id), row]));
  const put = isOpen ? sql.STORE_RUNS_LATER : sql.STORE_RUNS;
  const texts: Texts = {
    ask,
    change: (changed) => ask(isOpen ? sql.CHANGE_RUNS_LATER : sql.CHANGE_RUNS, { runs: changed }),
    put: (fresh) =>
      ask(origin ? sql.STORE_CHILDREN_LATER : put, { runs: fresh, channel, ...origin }),
  };
  const answers: EnqueueResult[] = [];
  for (const layer of layersOf(runs)) answers.push(...(await storeLayer(layer, rowOf, texts)));
  if (answers.some((answer) => "conflict" in answer)) await undo?.();
  return answers;
}

async function storeLayer(
  layer: readonly NewRun[],
  rowOf: ReadonlyMap<string, Row>,
  { ask, change, put }: Texts,
): Promise<readonly EnqueueResult[]> {
  const keyed = [...firstOfEachKey(layer).values()];
  const holders = await takeKeys(keyed, rowOf, ask);
  const { changed, holders: settled } = await meetRivals(keyed, holders, ask);
  const isStored = new Set(settled.filter(({ id, run }) => id === run).map(({ id }) => id));
  const fresh = layer.filter(({ id, key }) => key === null || isStored.has(id));
  if (changed.length > 0) await change(JSON.stringify(changed));
  if (fresh.length > 0) await put(JSON.stringify(fresh.map(({ id }) => rowOf.get(id))));
  return resultsOf(layer, settled);
}

/** Whose the keys are; their rows are ours until the end of the transaction. */
async function takeKeys(
  keyed: readonly NewRun[],
  rowOf: ReadonlyMap<string, Row>,
  ask: Send,
): Promise<readonly KeyHolder[]> {
  if (keyed.length === 0) return [];
  await ask(sql.TAKE_KEYS, { runs: JSON.stringify(keyed.map(({ id }) => rowOf.get(id))) });
  const keys = JSON.stringify(keyed.map((run, at) => ({ at, job: run.job, key: run.key?.key })));
  const found = await ask(sql.KEY_HOLDERS, { keys });
  return found.map(({ at, run, hash }) => ({
    id: (keyed[Number(at)] as NewRun).id,
    run: String(run),
    inputHash: String(hash),
  }));
}

/** Runs that replace or postpone another meet it: it is changed, or it has begun and loses the key. */
async function meetRivals(
  keyed: readonly NewRun[],
  holders: readonly KeyHolder[],
  ask: Send,
): Promise<{ readonly changed: readonly Row[]; readonly holders: readonly KeyHolder[] }> {
  const runOf = new Map(keyed.map((run) => [run.id, run]));
  const isRival = ({ id, run }: KeyHolder) =>
    id !== run && runOf.get(id)?.key?.onDuplicate !== undefined;
  const rivals = holders.filter(isRival);
  if (rivals.length === 0) return { changed: [], holders };
  const pulled = await pull(
    rivals.map(({ run }) => run),
    ask,
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
  if (keys.length > 0) await ask(sql.PASS_KEYS, { keys: JSON.stringify(keys) });
  return { changed, holders: settled };
}

/** Takes runs from their places that have not begun; answers under which limit each of them waited. */
async function pull(
  ids: readonly string[],
  ask: Send,
): Promise<ReadonlyMap<string, string | null>> {
  const pulled = new Map<string, string | null>();
  let open = ids;
  for (let tries = 0; open.length > 0 && tries < PULLS_MAX; tries += 1) {
    for (const row of await ask(sql.PULL_PENDING, { ids: idArray(open) }))
      pulled.set(String(row.id), row.flow === null ? null : String(row.flow));
    const left = open.filter((id) => !pulled.has(id));
    open =
      left.length === 0
        ? []
        : (await ask(sql.UNBEGUN, { ids: idArray(left) })).map(({ id }) => String(id));
  }
  return pulled;
}

/** As a literal: other libraries than ours write arrays in other ways. */
function idArray(ids: readonly string[]): string {
  return plainColumn(ids, (id) => id);
}
