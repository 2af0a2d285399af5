// Simulates a remote worker like `holdfast/client`: it claims under a name of its own, renews all its runs in one call,
// reports progress, stores items and ends its runs. It may die, be too late, or end a run of another worker.

import type { RemoteRun } from "../../../remote/remote.js";
import type { Effects } from "../checkers/effects.js";
import type { RemoteHistory } from "../checkers/remote.js";
import type { EventLog } from "../event-log.js";
import { mix } from "../random.js";
import type { RemoteConnection } from "./remote-connection.js";

export type RemoteWorkerWorld = {
  readonly log: EventLog;
  readonly seed: number;
  readonly connection: RemoteConnection;
  readonly effects: Effects;
  readonly history: RemoteHistory;
  nowMs(): number;
  pass(ms: number): Promise<void>;
  isQuiet(): boolean;
};

type Held = { readonly run: RemoteRun; isLost: boolean; isCancelled: boolean; isOver: boolean };

const JOBS = ["remote"] as const;
const ITEMS = ["far-1", "far-2"] as const;

/** Claims once and executes the claimed runs. Resolves when all of them are over. */
export async function workRemotely(
  params: { readonly name: string; readonly claimId: string; readonly limit: number },
  world: RemoteWorkerWorld,
): Promise<string> {
  const { name: instance, claimId, limit } = params;
  const { log, connection } = world;
  let answers = 0;
  const reply = await connection.call({
    name: `${claimId} claim`,
    send: (remote) => remote.claim({ instance, claimId, jobs: JOBS, limit }),
    onReply: ({ kind, ...rest }) => {
      const count = "answer" in rest ? rest.answer.length : 0;
      if (kind === "answered" && count > 0) answers += 1;
      if (answers === 2) log.saw("remote-claim-repeated");
      if (count > limit) log.violate("S7", `${instance} got ${count} runs of ${limit}.`);
    },
  });
  if (reply.kind !== "answered") return "no answer";
  const held = reply.answer.map((run) => ({
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
  const { connection, history, effects, log } = world;
  const grant = { id: run.id, fence: run.fence };
  const call = (verb: string) => `${params.name} ${verb} ${run.fence}`;
  const luck = mix(world.seed, "remote", run.fence);
  const isQuiet = world.isQuiet();
  // It pauses without noticing, as a frozen process does.
  const isLate = !isQuiet && luck % 8 === 0;
  if (isLate) each.isOver = true;
  await world.pass(isLate ? 1.3 * run.leaseMs + (luck % 30_000) : 200 + (luck % 9_000));
  if (luck % 3 === 0)
    await connection.call({
      name: call("progress"),
      send: (remote) => remote.progress(grant, { stage: "far", done: 1, total: 2 }),
    });
  if (luck % 2 === 0) await storeItems(each, call("items"), world);
  if (!isQuiet && luck % 7 === 3) await answerForAnother(each, params.held, world);
  if (each.isLost) return;
  const isFailing = each.isCancelled || (!isQuiet && (luck >> 4) % 6 === 0);
  if (!isFailing) effects.ended({ runId: run.id, fence: run.fence }, world.nowMs());
  const reply = await connection.call<void>({
    name: call(isFailing ? "fail" : "complete"),
    send: (remote) =>
      isFailing
        ? remote.fail(grant, { error: { message: "It went wrong far away." }, permanent: false })
        : remote.complete(grant, { fence: run.fence, attempt: run.attempt }),
    onReply: ({ kind }) => {
      if (kind !== "unknown") history.ended(grant, kind === "answered");
    },
  });
  each.isOver = true;
  if (reply.kind === "answered" && !isFailing) log.saw("remote-ran");
  if (reply.kind === "refused" && isLate) log.saw("remote-late-refused");
}

async function storeItems({ run }: Held, name: string, world: RemoteWorkerWorld): Promise<void> {
  const grant = { id: run.id, fence: run.fence };
  // Every attempt stores the same values, so there is no conflict.
  const items = ITEMS.map((key) => ({ key, value: key.length }));
  await world.connection.call({
    name,
    send: (remote) => remote.items(grant, items),
    onReply: (reply) => {
      if (reply.kind !== "answered") return;
      for (const { key, status } of reply.answer) {
        if (status === "stored") world.history.storedItem({ id: run.id, key, value: key.length });
        else world.log.violate("S9", `Item ${key} of ${run.id} met another value.`);
      }
    },
  });
}

/** Makes a mistake: it ends one run with the fence of another. */
async function answerForAnother(
  { run }: Held,
  held: readonly Held[],
  { connection, history }: RemoteWorkerWorld,
): Promise<void> {
  const fence = held.find((each) => each.run !== run)?.run.fence ?? run.fence + 1_000_000;
  await connection.call({
    name: `another ${run.fence}`,
    send: (remote) => remote.complete({ id: run.id, fence }, { fence }),
    onReply: ({ kind }) => {
      if (kind !== "unknown") history.endedAnother(run.id, kind === "answered");
    },
  });
}

/** Renews all held runs in one call, until none is left. */
async function beat(
  instance: string,
  { claimId, held }: { readonly claimId: string; readonly held: readonly Held[] },
  { connection, log, pass }: RemoteWorkerWorld,
): Promise<void> {
  for (let count = 1; ; count += 1) {
    const live = held.filter(({ isLost, isOver }) => !isLost && !isOver);
    if (live.length === 0) return;
    await pass(Math.min(...live.map(({ run }) => run.leaseMs)) / 3);
    const runs = held
      .filter(({ isLost, isOver }) => !isLost && !isOver)
      .map(({ run: { id, fence } }) => ({ id, fence }));
    if (runs.length === 0) return;
    const reply = await connection.call({
      name: `${claimId} heartbeat ${count}`,
      send: (remote) => remote.heartbeat({ instance, runs }),
    });
    if (reply.kind !== "answered") continue;
    for (const each of held) {
      if (reply.answer.lost.includes(each.run.id) && !each.isOver) {
        each.isLost = true;
        log.saw("remote-lost-told");
      }
      const found = reply.answer.held.find(({ id }) => id === each.run.id);
      if (found?.cancel && !each.isCancelled) {
        each.isCancelled = true;
        log.saw("remote-cancel-told");
      }
    }
  }
}
