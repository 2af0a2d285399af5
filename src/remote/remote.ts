// `holdfast.remote`: what workers elsewhere ask for over the network. They claim, renew, tell and end
// runs by id and fence; everything is written under the fence, so that a worker that was declared dead
// changes nothing. Answers may be lost on the way: every verb can be asked again.

import { keptStage, STAGES_MAX } from "../runs/rules/progress.js";
import type { Ending, RunId } from "../runs/rules/run.js";
import type { LogsPolicy } from "../runs/rules/run-logs.js";
import { JobNotRemoteError, LeaseLostError, ResultConflictError } from "../shared/errors.js";
import type { StoredError } from "../shared/failure.js";
import { isUuid } from "../shared/id.js";
import { encodeResult, isSameResult } from "../shared/json.js";
import { delay, type Ports } from "../shared/ports.js";
import { isTakenAway } from "../store/record.js";
import type { HeldRun } from "../store/remote.js";
import type { Claim, Grant, Settlement, Store } from "../store/store.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { Tracing } from "../telemetry/tracing.js";
import { callRemoteHooks, type RemoteHooksParams } from "../worker/hooks.js";
import { classifyFailure } from "../worker/rules/classify.js";
import { emitEnding, settlementOf, transitionOf } from "../worker/settlement.js";
import {
  type RemoteCaller,
  type RemoteClaimParams,
  RemoteClaims,
  type RemoteFailure,
  type RemoteItem,
  type RemoteLine,
  type RemoteRun,
  toItem,
  toRemoteRuns,
  toStoredError,
} from "./claims.js";
import { RemoteLogs } from "./logs.js";

export type { RemoteCaller, RemoteRun } from "./claims.js";

/** A lease that somebody has locked at this moment is asked for again. */
const UNKNOWN_TRIES = 5;

export class Remote {
  readonly #store: () => Promise<Store>;
  readonly #ports: Ports;
  readonly #emit: Emit;
  readonly #listens: (name: EventName) => boolean;
  readonly #meter: Meter;
  readonly #hooks: RemoteHooksParams;
  readonly #tracing: Tracing | null;
  readonly #onSettled: (settlements: readonly Settlement[]) => void;
  readonly #claims: RemoteClaims;
  readonly #logs: RemoteLogs;
  readonly #isLocal: (job: string) => boolean;

  constructor(params: {
    readonly store: () => Promise<Store>;
    readonly ports: Ports;
    readonly emit: Emit;
    readonly listens: (name: EventName) => boolean;
    readonly meter: Meter;
    /** Hooks of jobs that are registered in this process. */
    readonly hooks: RemoteHooksParams;
    readonly tracing: Tracing | null;
    /** Which lines of a job are kept, and how many. */
    readonly logsOf: (job: string) => LogsPolicy;
    /** Opens the gates of runs whose turn has come. */
    readonly release: (store: Store) => Promise<unknown>;
    /** Whether this process has a handler or a target for a job, or it is one of the built-in jobs. */
    readonly isLocal: (job: string) => boolean;
    readonly onSettled: (settlements: readonly Settlement[]) => void;
  }) {
    this.#store = params.store;
    this.#ports = params.ports;
    this.#emit = params.emit;
    this.#listens = params.listens;
    this.#meter = params.meter;
    this.#hooks = params.hooks;
    this.#tracing = params.tracing;
    this.#onSettled = params.onSettled;
    this.#isLocal = params.isLocal;
    this.#logs = new RemoteLogs(params);
    this.#claims = new RemoteClaims(params);
  }

  /**
   * At most `limit` runs of these jobs, each under a lease of its own. The same `claimId` answers with
   * the same runs, as long as they are held: for a claim whose answer was lost. Waits up to `waitMs`.
   * A `caller` over the network claims no job that an instance executes or sends to a target itself.
   */
  async claim(params: RemoteClaimParams, caller?: RemoteCaller): Promise<readonly RemoteRun[]> {
    if (caller) await this.#requireRemote(params.jobs);
    return (await this.#claims.claim(params, caller)).flatMap(toRemoteRuns);
  }

  /**
   * Throws a `LeaseLostError` where another one than this caller holds the run under this fence. A fence has
   * one holder ever, so the answer stays right. A run that is not held any more is for the verbs to judge.
   */
  async requireClaimer({ id, fence }: Grant, caller: RemoteCaller): Promise<void> {
    const held = isUuid(id) ? await (await this.#store()).heldRun({ id, fence }) : null;
    if (held && !isClaimer(held, caller)) throw new LeaseLostError(id, fence);
  }

  /** Renews what this instance holds; what is in neither list could not be told at this moment. */
  async heartbeat(
    params: { readonly instance: string; readonly runs: readonly Grant[] },
    caller?: RemoteCaller,
  ): Promise<{
    readonly held: readonly {
      readonly id: RunId;
      readonly leaseMs: number;
      readonly cancel: boolean;
    }[];
    readonly lost: readonly RunId[];
  }> {
    const store = await this.#store();
    const holder = await this.#claims.holder(store, params.instance, caller && { caller });
    const seen = await store.poll({ holder, jobs: [], queues: null, isScheduler: false });
    const cancelled = new Set(seen.cancelRequested);
    const fences = [...new Set(params.runs.map(({ fence }) => fence))];
    const { held, unknown } = await this.#renew(store, holder, fences);
    const leases = new Map(held.map((each) => [each.fence, each]));
    const kept = [];
    const lost: RunId[] = [];
    for (const { id, fence } of params.runs) {
      const lease = leases.get(fence);
      if (lease?.ids.includes(id))
        kept.push({ id, leaseMs: lease.leaseMs, cancel: cancelled.has(id) });
      else if (!unknown.includes(fence)) lost.push(id);
    }
    return { held: kept, lost };
  }

  /** Renews one run, whichever instance it was claimed for. */
  async beat(grant: Grant): Promise<{ readonly leaseMs: number; readonly cancel: boolean }> {
    const { store, held } = await this.#held(grant);
    const answer = await this.#renew(store, held.holder, [grant.fence]);
    const [renewed] = answer.held;
    if (!renewed && answer.unknown.length === 0) throw new LeaseLostError(grant.id, grant.fence);
    const { isCancelRequested: cancel, claim } = held;
    return { leaseMs: renewed?.leaseMs ?? claim.leaseMs, cancel };
  }

  /** Tells how far a run is; counts as a heartbeat. */
  async progress(
    grant: Grant,
    told: { readonly stage?: string; readonly done?: number; readonly total?: number },
  ): Promise<void> {
    const { store, held } = await this.#held(grant);
    const { done = null, total = null } = told;
    const stage = told.stage === undefined ? null : keptStage(told.stage);
    const [before] = await store.progressOf([grant.id]);
    const isSame = before !== undefined && before.attempt === held.claim.attempt;
    const known = isSame ? before.stages.map((each) => each.stage) : [];
    const isNew = stage !== null && !known.includes(stage) && known.length < STAGES_MAX;
    const stages = isNew ? [...known, stage] : known;
    const write = { ...grant, stage, done, total, agoMs: 0 };
    const writes = [{ ...write, stages: stages.map((each) => ({ stage: each, agoMs: 0 })) }];
    const answer = await this.#untilKnown(() => store.progress({ holder: held.holder, writes }));
    if (answer.held.length === 0 && answer.unknown.length === 0)
      throw new LeaseLostError(grant.id, grant.fence);
  }

  /** Stores items, each by itself; one that was done before with another value is a conflict. */
  async items(
    grant: Grant,
    items: readonly RemoteItem[],
  ): Promise<readonly { readonly key: string; readonly status: "stored" | "conflict" }[]> {
    if (!isUuid(grant.id)) throw new LeaseLostError(grant.id, grant.fence);
    const store = await this.#store();
    const answers = await store.storeItems(items.map((item) => ({ ...grant, ...toItem(item) })));
    if (answers.includes("stale")) throw new LeaseLostError(grant.id, grant.fence);
    return items.map(({ key }, at) => ({
      key,
      status: answers[at] === "stored" ? "stored" : "conflict",
    }));
  }

  /**
   * Lines are numbered by `from`, so that lines sent twice are there once. What is beyond the job's
   * `logs` is counted in a last line, as it is for a handler.
   */
  async logs(grant: Grant, lines: readonly RemoteLine[], from?: number): Promise<void> {
    const { store, held } = await this.#held(grant);
    const { isRefused } = await this.#logs.append({ store, held, grant, lines, from });
    if (isRefused) throw new LeaseLostError(grant.id, grant.fence);
  }

  /** The run has ended well, with this result. Repeated with another result it rejects with a `ResultConflictError`. */
  complete(grant: Grant, result: unknown): Promise<void> {
    return this.#end(grant, { kind: "completed" }, { result: encodeResult(result), error: null });
  }

  /** Retried by the run's own policy, unless it is permanent. */
  fail(grant: Grant, { error, permanent, retryAfterMs }: RemoteFailure): Promise<void> {
    const described = toStoredError(error);
    const isTransient =
      permanent === undefined ? classifyFailure(described).class === "transient" : !permanent;
    const later = retryAfterMs === undefined ? {} : { retryAfterMs };
    return this.#end(
      grant,
      { kind: "failed", isTransient, ...later },
      { result: null, error: described },
    );
  }

  /**
   * A worker that stops gives a run back: it is ready at once, and the attempt is not burnt, as when an
   * instance hands back what it holds.
   */
  release(grant: Grant): Promise<void> {
    return this.#end(grant, { kind: "handed_back" }, { result: null, error: null });
  }

  async #requireRemote(jobs: readonly string[]): Promise<void> {
    const here = jobs.find((job) => this.#isLocal(job));
    const [local] = here === undefined ? await (await this.#store()).localJobs(jobs) : [here];
    if (local !== undefined) throw new JobNotRemoteError(local);
  }

  // ── holding ────────────────────────────────────────────────────────────────────────────────────

  async #held(grant: Grant): Promise<{ readonly store: Store; readonly held: HeldRun<Claim> }> {
    const store = await this.#store();
    const held = isUuid(grant.id) ? await store.heldRun(grant) : null;
    if (!held) throw new LeaseLostError(grant.id, grant.fence);
    return { store, held };
  }

  async #renew(store: Store, holder: number, fences: readonly number[]) {
    let answer = await store.renew({ holder, fences });
    for (let tries = 1; answer.unknown.length > 0 && tries < UNKNOWN_TRIES; tries += 1) {
      await delay(this.#ports.clock, 20 * tries);
      const again = await store.renew({ holder, fences: answer.unknown });
      answer = { held: [...answer.held, ...again.held], unknown: again.unknown };
    }
    return answer;
  }

  /** For one lease: asks again while somebody has it locked. */
  async #untilKnown<A extends { readonly unknown: readonly number[] }>(ask: () => Promise<A>) {
    let answer = await ask();
    for (let tries = 1; answer.unknown.length > 0 && tries < UNKNOWN_TRIES; tries += 1) {
      await delay(this.#ports.clock, 20 * tries);
      answer = await ask();
    }
    return answer;
  }

  // ── ending ─────────────────────────────────────────────────────────────────────────────────────

  async #end(
    grant: Grant,
    ending: Ending,
    told: { readonly result: string | null; readonly error: StoredError | null },
  ): Promise<void> {
    const store = await this.#store();
    const held = isUuid(grant.id) ? await store.heldRun(grant) : null;
    const [run] = held?.claim.runs ?? [];
    // Already ended under this fence: a repeated call succeeds, another end is refused.
    if (!held || !run) return this.#requireEnded(store, grant, { ending, result: told.result });
    const { claim, heldMs: ranMs, isCancelRequested } = held;
    const chance = () => this.#ports.chance.next();
    const transition = transitionOf({ run, claim, isCancelRequested }, ending, chance);
    const settlement = settlementOf({ held: { run, claim }, report: told, transition, ranMs });
    const settle = () =>
      store.exchange({
        holder: held.holder,
        token: this.#ports.ids.unique(),
        settlements: [settlement],
        limit: 0,
        wantsSuspect: false,
        jobs: [],
        queues: null,
        chance: chance(),
      });
    const verb = ending.kind === "completed" ? "complete" : "fail";
    const facts = { verb, run: run.id, job: claim.job, trace: run.trace } as const;
    const { stale } = await (this.#tracing ? this.#tracing.ending(facts, settle) : settle());
    // Taken over or ended otherwise between the look and the write; the same call sent twice is not stale.
    if (stale.length > 0) return this.#requireEnded(store, grant, { ending, result: told.result });
    this.#onSettled([settlement]);
    emitEnding({
      attempt: { claim, run },
      report: { ending, ...told },
      transition,
      ranMs,
      emit: this.#emit,
      listens: this.#listens,
      meter: this.#meter,
    });
    await callRemoteHooks(this.#hooks, { claim, run, ending, transition, ...told });
  }

  async #requireEnded(
    store: Store,
    { id, fence }: Grant,
    { ending: { kind }, result }: { readonly ending: Ending; readonly result: string | null },
  ): Promise<void> {
    const attempts = isUuid(id) ? await store.attempts(id) : [];
    const ended = attempts.find((attempt) => attempt.fence === fence);
    // A run that was told to stop is cancelled by its failure, or by being handed back. One that was
    // taken away ended without it.
    const ends: readonly (string | undefined)[] =
      kind === "completed" ? [kind] : [kind, "cancelled"];
    const isAsTold = ended && ends.includes(ended.end) && !isTakenAway(ended.error);
    if (!isAsTold) throw new LeaseLostError(id, fence);
    if (kind !== "completed") return;
    const stored = await store.run(id);
    if (stored && !isSameResult(result, stored.result)) throw new ResultConflictError(id, fence);
  }
}

/** Whether the run was claimed with this caller's credential, by the worker that it names, within its limits. */
function isClaimer({ claim, instance, remoteBy }: HeldRun<Claim>, caller: RemoteCaller): boolean {
  const { by, jobs, queues } = caller;
  if (remoteBy !== by || (caller.instance ?? instance) !== instance) return false;
  return (
    (jobs ?? [claim.job]).includes(claim.job) && (queues ?? [claim.queue]).includes(claim.queue)
  );
}
