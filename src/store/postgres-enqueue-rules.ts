// Storing runs on PostgreSQL whose keys replace or postpone, or that are limited and have keys: one
// transaction of several statements. All keys are locked first and in sorted order, limits are touched
// last: so two batches wait for one another at most, and what a key stands for cannot change between.

import { answersOf, firstOfEachKey, type KeyHolder, layersOf } from "./keys.js";
import type { Row } from "./postgres.js";
import * as sql from "./sql/postgres.js";
import type * as store from "./store.js";

type Ask = (template: string, params: Row) => Promise<Row[]>;

/** A run that moves between two places is out of sight for a moment. */
const PULLS_MAX = 20;

export type RuledRuns = {
  readonly runs: readonly store.NewRun[];
  /** The same, as the statements take them. */
  readonly rows: readonly Row[];
  readonly isAtomic: boolean;
  readonly rollback: () => Promise<unknown>;
};

export async function storeByRules(
  { runs, rows, isAtomic, rollback }: RuledRuns,
  ask: Ask,
): Promise<readonly store.EnqueueAnswer[]> {
  const rowOf = new Map(rows.map((row) => [String(row.id), row]));
  const answers: store.EnqueueAnswer[] = [];
  for (const layer of layersOf(runs)) answers.push(...(await storeLayer(layer, rowOf, ask)));
  if (isAtomic && answers.some((answer) => "conflict" in answer)) await rollback();
  return answers;
}

async function storeLayer(
  layer: readonly store.NewRun[],
  rowOf: ReadonlyMap<string, Row>,
  ask: Ask,
): Promise<readonly store.EnqueueAnswer[]> {
  const keyed = [...firstOfEachKey(layer).values()];
  const holders = await takeKeys(keyed, rowOf, ask);
  const { changed, holders: settled } = await meetRivals(keyed, holders, ask);
  const isStored = new Set(settled.filter(({ id, run }) => id === run).map(({ id }) => id));
  const fresh = layer.filter(({ id, key }) => key === null || isStored.has(id));
  if (changed.length > 0) await ask(sql.CHANGE_RUNS, { runs: JSON.stringify(changed) });
  if (fresh.length > 0) {
    const runs = JSON.stringify(fresh.map(({ id }) => rowOf.get(id)));
    await ask(sql.STORE_RUNS, { runs, channel: null });
  }
  return answersOf(layer, settled);
}

/** Whose the keys are; their rows are ours until the end of the transaction. */
async function takeKeys(
  keyed: readonly store.NewRun[],
  rowOf: ReadonlyMap<string, Row>,
  ask: Ask,
): Promise<readonly KeyHolder[]> {
  if (keyed.length === 0) return [];
  await ask(sql.TAKE_KEYS, { runs: JSON.stringify(keyed.map(({ id }) => rowOf.get(id))) });
  const keys = JSON.stringify(keyed.map((run, at) => ({ at, job: run.job, key: run.key?.key })));
  const found = await ask(sql.KEY_HOLDERS, { keys });
  return found.map(({ at, run, input_hash }) => ({
    id: (keyed[Number(at)] as store.NewRun).id,
    run: String(run),
    inputHash: String(input_hash),
  }));
}

/** Runs that replace or postpone another meet it: it is changed, or it has begun and loses the key. */
async function meetRivals(
  keyed: readonly store.NewRun[],
  holders: readonly KeyHolder[],
  ask: Ask,
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
    const by = runOf.get(holder.id) as store.NewRun;
    const key = by.key as store.NewKey;
    const isPulled = pulled.has(holder.run);
    const isReplaced = key.onDuplicate === "replace";
    const run = isPulled ? holder.run : by.id;
    if (isPulled) {
      changed.push({
        id: run,
        job: by.job,
        dueAt: by.dueAt,
        delayMs: by.delayMs,
        input: isReplaced ? by.input : null,
        flow: isReplaced ? by.flow : pulled.get(run),
      });
    }
    if (!isPulled || isReplaced) {
      const { lastsMs } = key;
      keys.push({
        id: run,
        job: by.job,
        key: key.key,
        inputHash: key.inputHash,
        lastsMs: typeof lastsMs === "number" ? lastsMs : null,
        isLive: lastsMs === "live",
        isNew: !isPulled,
      });
    }
    return { id: by.id, run, inputHash: key.inputHash };
  });
  if (keys.length > 0) await ask(sql.PASS_KEYS, { keys: JSON.stringify(keys) });
  return { changed, holders: settled };
}

/** Takes runs from their places that have not begun; answers under which limit each of them waited. */
async function pull(ids: readonly string[], ask: Ask): Promise<ReadonlyMap<string, string | null>> {
  const pulled = new Map<string, string | null>();
  let open = ids;
  for (let tries = 0; open.length > 0 && tries < PULLS_MAX; tries += 1) {
    for (const row of await ask(sql.PULL_PENDING, { ids: open }))
      pulled.set(String(row.id), row.flow === null ? null : String(row.flow));
    const left = open.filter((id) => !pulled.has(id));
    open =
      left.length === 0 ? [] : (await ask(sql.UNBEGUN, { ids: left })).map(({ id }) => String(id));
  }
  return pulled;
}
