// A worker elsewhere, as `holdfast/client` is one: it claims under a name of its own, renews all it
// holds in one call, tells how far it is, stores items and ends its runs. It may die, come too late, or
// answer for a run that is not its own.

import type { RemoteRun } from "../../../remote/remote.js";
import type { RemoteHistory } from "../checkers/remote.js";
import type { EventLog } from "../event-log.js";
import { mix } from "../random.js";
import type { Effects } from "../workload/effects.js";
import type { ElsewhereLine } from "./remote-line.js";

export type RemoteWorkerWorld = {
  readonly chronicle: EventLog;
  readonly seed: number;
  readonly line: ElsewhereLine;
  readonly effects: Effects;
  readonly history: RemoteHistory;
  nowMs(): number;
  pass(ms: number): Promise<void>;
  isQuiet(): boolean;
};

type Held = { readonly run: RemoteRun; isLost: boolean; isCancelled: boolean; isOver: boolean };

const JOBS = ["remote"] as const;
const ITEMS = ["far-1", "far-2"] as const;

/** One claim and all that comes of it. Resolves when nothing of it is left. */
export async function workRemotely(
  params: { readonly name: string; readonly claimId: string; readonly limit: number },
  world: RemoteWorkerWorld,
): Promise<string> {
  const { name: instance, claimId, limit } = params;
  const { chronicle, line } = world;
  let answers = 0;
  const told = await line.ask({
    name: `${claimId} claim`,
    ask: (remote) => remote.claim({ instance, claimId, jobs: JOBS, limit }),
    onAnswer: ({ kind, ...rest }) => {
      const count = "answer" in rest ? rest.answer.length : 0;
      if (kind === "answered" && count > 0) answers += 1;
      if (answers === 2) chronicle.saw("remote-claim-repeated");
      if (count > limit) chronicle.violate("S7", `${instance} got ${count} runs of ${limit}.`);
    },
  });
  if (told.kind !== "answered") return "no answer";
  const held = told.answer.map((run) => ({
    run,
    isLost: false,
    isCancelled: false,
    isOver: false,
  }));
  for (const { run } of held)
    world.effects.begun(instance, { runId: run.id, fence: run.fence, attempt: run.attempt });
  const isDead = !world.isQuiet() && mix(world.seed, claimId, "death") % 9 === 0;
  if (isDead) return "died with what it had claimed";
  const working = held.map((each) => work(each, { ...params, held }, world));
  const beating = beat(instance, { claimId, held }, world);
  await Promise.all([...working, beating]);
  return `${held.length} runs`;
}

async function work(
  each: Held,
  params: { readonly name: string; readonly held: readonly Held[] },
  world: RemoteWorkerWorld,
): Promise<void> {
  const { run } = each;
  const { line, history, effects, chronicle } = world;
  const grant = { id: run.id, fence: run.fence };
  const call = (verb: string) => `${params.name} ${verb} ${run.fence}`;
  const luck = mix(world.seed, "remote", run.fence);
  const isQuiet = world.isQuiet();
  // It stands still, and does not know for how long.
  const isLate = !isQuiet && luck % 8 === 0;
  if (isLate) each.isOver = true;
  await world.pass(isLate ? 1.3 * run.leaseMs + (luck % 30_000) : 200 + (luck % 9_000));
  if (luck % 3 === 0)
    await line.ask({
      name: call("progress"),
      ask: (remote) => remote.progress(grant, { stage: "far", done: 1, total: 2 }),
    });
  if (luck % 2 === 0) await storeItems(each, call("items"), world);
  if (!isQuiet && luck % 7 === 3) await answerForAnother(each, params.held, world);
  if (each.isLost) return;
  const isFailing = each.isCancelled || (!isQuiet && (luck >> 4) % 6 === 0);
  if (!isFailing) effects.ended({ runId: run.id, fence: run.fence }, world.nowMs());
  const told = await line.ask<void>({
    name: call(isFailing ? "fail" : "complete"),
    ask: (remote) =>
      isFailing
        ? remote.fail(grant, { error: { message: "It went wrong far away." }, permanent: false })
        : remote.complete(grant, { fence: run.fence, attempt: run.attempt }),
    onAnswer: ({ kind }) => {
      if (kind !== "unknown") history.ended(grant, kind === "answered");
    },
  });
  each.isOver = true;
  if (told.kind === "answered" && !isFailing) chronicle.saw("remote-ran");
  if (told.kind === "refused" && isLate) chronicle.saw("remote-late-refused");
}

async function storeItems({ run }: Held, name: string, world: RemoteWorkerWorld): Promise<void> {
  const grant = { id: run.id, fence: run.fence };
  // Every attempt comes to the same, so none is a conflict.
  const items = ITEMS.map((key) => ({ key, value: key.length }));
  await world.line.ask({
    name,
    ask: (remote) => remote.items(grant, items),
    onAnswer: (told) => {
      if (told.kind !== "answered") return;
      for (const { key, status } of told.answer) {
        if (status === "stored") world.history.storedItem({ id: run.id, key, value: key.length });
        else world.chronicle.violate("S9", `Item ${key} of ${run.id} met another value.`);
      }
    },
  });
}

/** A mistake of the worker's: the id of one run with the fence of another. */
async function answerForAnother(
  { run }: Held,
  held: readonly Held[],
  { line, history }: RemoteWorkerWorld,
): Promise<void> {
  const fence = held.find((each) => each.run !== run)?.run.fence ?? run.fence + 1_000_000;
  await line.ask({
    name: `another ${run.fence}`,
    ask: (remote) => remote.complete({ id: run.id, fence }, { fence }),
    onAnswer: ({ kind }) => {
      if (kind !== "unknown") history.endedAnother(run.id, kind === "answered");
    },
  });
}

/** Renews all that is held in one call, until nothing is. */
async function beat(
  instance: string,
  { claimId, held }: { readonly claimId: string; readonly held: readonly Held[] },
  { line, chronicle, pass }: RemoteWorkerWorld,
): Promise<void> {
  for (let count = 1; ; count += 1) {
    const live = held.filter(({ isLost, isOver }) => !isLost && !isOver);
    if (live.length === 0) return;
    await pass(Math.min(...live.map(({ run }) => run.leaseMs)) / 3);
    const runs = held
      .filter(({ isLost, isOver }) => !isLost && !isOver)
      .map(({ run: { id, fence } }) => ({ id, fence }));
    if (runs.length === 0) return;
    const told = await line.ask({
      name: `${claimId} heartbeat ${count}`,
      ask: (remote) => remote.heartbeat({ instance, runs }),
    });
    if (told.kind !== "answered") continue;
    for (const each of held) {
      if (told.answer.lost.includes(each.run.id) && !each.isOver) {
        each.isLost = true;
        chronicle.saw("remote-lost-told");
      }
      const found = told.answer.held.find(({ id }) => id === each.run.id);
      if (found?.cancel && !each.isCancelled) {
        each.isCancelled = true;
        chronicle.saw("remote-cancel-told");
      }
    }
  }
}
