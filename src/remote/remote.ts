// Gives remote workers `holdfast.remote`: they claim, renew, report on and end runs by id and fence. This folder must never
// write without the fence, so that a worker that was declared dead changes nothing, and must never send a dispatch twice.
// Responses may be lost: every verb can be repeated.

import { isChosenOutcome, OUTCOMES_MAX } from "../runs/rules/item.js";
import { keptStage, STAGES_MAX } from "../runs/rules/progress.js";
import type { Ending, RunId } from "../runs/rules/run.js";
import { droppedLine, keptMessage, type LogsPolicy, linesWithin } from "../runs/rules/run-logs.js";
import {
  ConfigurationError,
  JobNotRemoteError,
  LeaseLostError,
  ResultConflictError,
} from "../shared/errors.js";
import type { StoredError } from "../shared/failure.js";
import { isUuid } from "../shared/id.js";
import { encodeResult, isSameResult } from "../shared/json.js";
import { delay, type Ports } from "../shared/ports.js";
import type { Grant, HeldRun, Settlement } from "../store/claims.js";
import { isTakenAway } from "../store/leases.js";
import type { RunRecord } from "../store/runs/runs.js";
import type { Store } from "../store/store.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { Tracing } from "../telemetry/tracing.js";
import { emitEnding, settlementOf, transitionOf } from "../worker/completer.js";
import type { FanOut } from "../worker/handler/fan-out.js";
import { callRemoteHooks, type RemoteHooksParams } from "../worker/hooks.js";
import { classifyFailure } from "../worker/rules/classify.js";
import {
  type RemoteCaller,
  type RemoteClaimParams,
  RemoteClaims,
  type RemoteFailure,
  type RemoteItem,
  type RemoteLine,
  type RemoteRun,
  toItem,
} from "./claims.js";
import { toStoredError } from "./remote-error.js";
import {
  NO_STEPS,
  type RemoteNewStep,
  type RemoteNewWait,
  RemoteStepKeeper,
  type RemoteSteps,
  type RemoteSuspension,
} from "./remote-steps.js";

export type { RemoteCaller, RemoteRun } from "./claims.js";

/** How often a lease that another transaction has locked is tried. */
const UNKNOWN_TRIES = 5;

type SentLines = {
  readonly store: Store;
  readonly held: HeldRun;
  readonly grant: Grant;
  readonly lines: readonly RemoteLine[];
  /** The number of the first line; undefined: after the last one. */
  readonly from: number | undefined;
};

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
  readonly #steps: RemoteStepKeeper;
  readonly #logsOf: (job: string) => LogsPolicy;
  /** The last call of each name that runs in turn. */
  readonly #underWay = new Map<string, Promise<unknown>>();
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
    /** The log policy of a job. */
    readonly logsOf: (job: string) => LogsPolicy;
    /** Opens the gates of runs whose turn has come. */
    readonly release: (store: Store) => Promise<unknown>;
    /** Whether this process has a handler or a target for a job, or it is one of the built-in jobs. */
    readonly isLocal: (job: string) => boolean;
    readonly onSettled: (settlements: readonly Settlement[]) => void;
    /** Makes the runs that remote handlers call. */
    readonly fanOutOf: (store: Store) => Pick<FanOut, "call">;
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
    this.#logsOf = params.logsOf;
    const onSuspended = () => params.onSettled([]);
    this.#steps = new RemoteStepKeeper({ ...params, onSuspended });
    this.#claims = new RemoteClaims(params);
  }

  /**
   * Claims at most `limit` runs of these jobs, each under a lease of its own; waits up to `waitMs`. The same `claimId`
   * returns the same runs while they are held, for a claim whose response was lost. A `caller` over the network cannot
   * claim a job that an instance executes or sends to a target itself.
   */
  async claim(params: RemoteClaimParams, caller?: RemoteCaller): Promise<readonly RemoteRun[]> {
    if (caller === undefined) return this.#claims.claim(params);
    await this.#requireRemote(params.jobs);
    // A thousand made-up names would make every look at the instances slow.
    const works = await (await this.#store()).jobs.known(params.jobs);
    return this.#claims.claim({ ...params, works }, caller);
  }

  /**
   * Throws a `LeaseLostError` if another caller holds the run under this fence. A fence only ever has one holder, so the
   * result stays right. The verbs decide about a run that is no longer held, if it is within the limits of the caller.
   */
  async requireClaimer({ id, fence }: Grant, caller: RemoteCaller): Promise<void> {
    if (!isUuid(id)) return;
    const store = await this.#store();
    const held = await store.claims.held({ id, fence });
    const isLimited = caller.jobs !== undefined || caller.queues !== undefined;
    const ended = held === null && isLimited ? await store.runs.get(id) : null;
    const isRefused = held ? !isClaimer(held, caller) : ended !== null && !isWithin(ended, caller);
    if (isRefused) throw new LeaseLostError(id, fence);
  }

  /** Renews the runs of this instance; a run in neither list is locked by another transaction at the moment. */
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
    const seen = await store.work.poll({ holder, jobs: [], queues: null, isScheduler: false });
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

  /** Renews one run, for any instance that claimed it. */
  async beat(grant: Grant): Promise<{ readonly leaseMs: number; readonly cancel: boolean }> {
    const { store, held } = await this.#held(grant);
    const renewal = await this.#renew(store, held.holder, [grant.fence]);
    const [renewed] = renewal.held;
    if (!renewed && renewal.unknown.length === 0) throw new LeaseLostError(grant.id, grant.fence);
    const { isCancelRequested: cancel, claim } = held;
    return { leaseMs: renewed?.leaseMs ?? claim.leaseMs, cancel };
  }

  /** Stores the progress of a run; counts as a heartbeat. */
  async progress(
    grant: Grant,
    report: { readonly stage?: string; readonly done?: number; readonly total?: number },
  ): Promise<void> {
    const { store, held } = await this.#held(grant);
    const { done = null, total = null } = report;
    const stage = report.stage === undefined ? null : keptStage(report.stage);
    const [before] = await store.progress.of([grant.id]);
    const isSame = before !== undefined && before.attempt === held.claim.attempt;
    const known = isSame ? before.stages.map((each) => each.stage) : [];
    const isNew = stage !== null && !known.includes(stage) && known.length < STAGES_MAX;
    const stages = isNew ? [...known, stage] : known;
    const write = { ...grant, stage, done, total, agoMs: 0 };
    const writes = [{ ...write, stages: stages.map((each) => ({ stage: each, agoMs: 0 })) }];
    const renewal = await this.#untilKnown(() =>
      store.progress.write({ holder: held.holder, writes }),
    );
    if (renewal.held.length === 0 && renewal.unknown.length === 0)
      throw new LeaseLostError(grant.id, grant.fence);
  }

  /** Stores items one by one; an item that was stored with another value is a conflict. */
  async items(
    grant: Grant,
    items: readonly RemoteItem[],
  ): Promise<readonly { readonly key: string; readonly status: "stored" | "conflict" }[]> {
    if (!isUuid(grant.id)) throw new LeaseLostError(grant.id, grant.fence);
    const store = await this.#store();
    const writes = items.map((item) => ({ ...grant, ...toItem(item) }));
    const chosen = new Set(writes.map(({ outcome }) => outcome).filter(isChosenOutcome));
    const write = async () => {
      if (chosen.size > 0) requireFewOutcomes(chosen, await store.runs.get(grant.id));
      return store.items.store(writes);
    };
    const stored = await (chosen.size === 0 ? write() : this.#inTurn(`items ${grant.id}`, write));
    if (stored.includes("stale")) throw new LeaseLostError(grant.id, grant.fence);
    return items.map(({ key }, at) => ({
      key,
      status: stored[at] === "stored" ? "stored" : "conflict",
    }));
  }

  /**
   * Stores log lines. `from` numbers them, so that lines sent twice are stored once. Lines beyond the job's `logs` are
   * counted in a last line, as for a local handler.
   */
  async logs(grant: Grant, lines: readonly RemoteLine[], from?: number): Promise<void> {
    const { store, held } = await this.#held(grant);
    const append = () => this.#append({ store, held, grant, lines, from });
    const { isRefused } = await this.#inTurn(`logs ${grant.id} ${grant.fence}`, append);
    if (isRefused) throw new LeaseLostError(grant.id, grant.fence);
  }

  /**
   * Stores finished steps of a run. With `after` it also records the ends of waits that are over, and returns what is
   * stored after that number.
   */
  async steps(
    grant: Grant,
    { steps = [], after }: { readonly steps?: readonly RemoteNewStep[]; readonly after?: number },
  ): Promise<
    { readonly stored: readonly { readonly name: string; readonly no: number }[] } & RemoteSteps
  > {
    const of = { ...(await this.#held(grant)), grant };
    return this.#inTurn(`steps ${grant.id}`, async () => {
      const stored = await this.#steps.finish(of, steps);
      return { stored, ...(after === undefined ? NO_STEPS : await this.#steps.after(of, after)) };
    });
  }

  /**
   * Begins waits of a run, and unless `suspend` is false lets it sleep until the first of them ends: it is claimed anew then.
   * Repeated under its fence it returns the same.
   */
  async wait(
    grant: Grant,
    params: {
      readonly waits?: readonly RemoteNewWait[];
      readonly suspend?: boolean;
      readonly retries?: readonly string[];
    },
  ): Promise<RemoteSuspension> {
    const { waits = [], suspend = true, retries = [] } = params;
    const store = await this.#store();
    const held = isUuid(grant.id) ? await store.claims.held(grant) : null;
    if (!held) {
      const before =
        suspend && isUuid(grant.id) ? await this.#steps.wasSuspended(store, grant) : null;
      if (!before) throw new LeaseLostError(grant.id, grant.fence);
      return { state: "suspended", ...before, waits: [] };
    }
    const of = { store, held, grant };
    return this.#inTurn(`steps ${grant.id}`, async () => {
      const open = waits.length > 0 || !suspend ? await this.#steps.begin(of, waits) : [];
      if (!suspend) return { state: "held", wakeInMs: null, waits: open };
      const tried = waits.flatMap((wait) => (wait.kind === "retry" ? [wait.name] : []));
      const suspended = await this.#steps.suspend(of, [...retries, ...tried]);
      return { state: "suspended", ...suspended, waits: open };
    });
  }

  /** Runs calls of the same name one after the other: each has to count what the earlier ones stored. */
  async #inTurn<T>(name: string, act: () => Promise<T>): Promise<T> {
    const before = this.#underWay.get(name) ?? Promise.resolve();
    const acting = before.catch(() => undefined).then(act);
    this.#underWay.set(name, acting);
    try {
      return await acting;
    } finally {
      if (this.#underWay.get(name) === acting) this.#underWay.delete(name);
    }
  }

  /** Completes the run. Repeated with another result, it rejects with a `ResultConflictError`. */
  complete(grant: Grant, result: unknown): Promise<void> {
    return this.#end(grant, { kind: "completed" }, { result: encodeResult(result), error: null });
  }

  /** Fails the attempt; the run is retried by its own policy, unless the failure is permanent. */
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
   * Hands a run back when its worker stops: the run is ready at once, and the attempt does not count.
   */
  release(grant: Grant): Promise<void> {
    return this.#end(grant, { kind: "handed_back" }, { result: null, error: null });
  }

  async #requireRemote(jobs: readonly string[]): Promise<void> {
    const here = jobs.find((job) => this.#isLocal(job));
    const [local] = here === undefined ? await (await this.#store()).jobs.local(jobs) : [here];
    if (local !== undefined) throw new JobNotRemoteError(local);
  }

  // ── holding ────────────────────────────────────────────────────────────────────────────────────

  async #held(grant: Grant): Promise<{ readonly store: Store; readonly held: HeldRun }> {
    const store = await this.#store();
    const held = isUuid(grant.id) ? await store.claims.held(grant) : null;
    if (!held) throw new LeaseLostError(grant.id, grant.fence);
    return { store, held };
  }

  async #renew(store: Store, holder: number, fences: readonly number[]) {
    let renewal = await store.leases.renew({ holder, fences });
    for (let tries = 1; renewal.unknown.length > 0 && tries < UNKNOWN_TRIES; tries += 1) {
      await delay(this.#ports.clock, 20 * tries);
      const again = await store.leases.renew({ holder, fences: renewal.unknown });
      renewal = { held: [...renewal.held, ...again.held], unknown: again.unknown };
    }
    return renewal;
  }

  /** Repeats a write to one lease while another transaction has it locked. */
  async #untilKnown<A extends { readonly unknown: readonly number[] }>(attempt: () => Promise<A>) {
    let renewal = await attempt();
    for (let tries = 1; renewal.unknown.length > 0 && tries < UNKNOWN_TRIES; tries += 1) {
      await delay(this.#ports.clock, 20 * tries);
      renewal = await attempt();
    }
    return renewal;
  }

  /** Keeps lines within the limits of an attempt. `isRefused`: the run is no longer held under this fence. */
  async #append({ store, held, grant, lines, from }: SentLines): Promise<{ isRefused: boolean }> {
    const nowMs = this.#ports.clock.wallMs();
    const agoMs = (at: Date) => Math.min(Math.max(0, nowMs - at.getTime()), held.heldMs);
    const last = from === undefined ? 0 : from + lines.length - 1;
    const kept = await store.logs.kept({ ...grant, first: from ?? 0, last });
    const first = from ?? Math.max(kept.last, kept.droppedTo) + 1;
    const numbered = lines.map(({ at, level, message }, index) => ({
      ...grant,
      no: first + index,
      level,
      agoMs: at === undefined ? 0 : agoMs(at),
      message: keptMessage(message),
      fields: null,
    }));
    const within = linesWithin(numbered, kept, this.#logsOf(held.claim.job));
    const isMore = within.dropped !== null && within.dropped.dropped > kept.dropped;
    const marker = within.dropped && {
      ...grant,
      no: within.last + 1,
      level: "warn" as const,
      agoMs: 0,
      ...droppedLine(within.dropped),
    };
    const written = marker && isMore ? [...within.lines, marker] : within.lines;
    if (written.length === 0) return { isRefused: false };
    const refused = await store.logs.append({ holder: held.holder, lines: written });
    return { isRefused: refused.length > 0 };
  }

  // ── ending ─────────────────────────────────────────────────────────────────────────────────────

  async #end(
    grant: Grant,
    ending: Ending,
    report: { readonly result: string | null; readonly error: StoredError | null },
  ): Promise<void> {
    const store = await this.#store();
    const held = isUuid(grant.id) ? await store.claims.held(grant) : null;
    const [run] = held?.claim.runs ?? [];
    // Already ended under this fence: a repeated call succeeds, another end is refused.
    if (!held || !run) return this.#requireEnded(store, grant, { ending, result: report.result });
    const { claim, heldMs: ranMs, isCancelRequested } = held;
    const random = () => this.#ports.random.next();
    const transition = transitionOf({ run, claim, isCancelRequested }, ending, random);
    const settlement = settlementOf({ held: { run, claim }, report: report, transition, ranMs });
    const settle = () =>
      store.claims.exchange({
        holder: held.holder,
        token: this.#ports.ids.unique(),
        settlements: [settlement],
        limit: 0,
        wantsSuspect: false,
        jobs: [],
        queues: null,
        random: random(),
      });
    const verb = ending.kind === "completed" ? "complete" : "fail";
    const facts = { verb, run: run.id, job: claim.job, trace: run.trace } as const;
    const { stale } = await (this.#tracing ? this.#tracing.ending(facts, settle) : settle());
    // The run was reclaimed or ended differently after the read. A repeat of the same call is not stale.
    if (stale.length > 0)
      return this.#requireEnded(store, grant, { ending, result: report.result });
    this.#onSettled([settlement]);
    emitEnding({
      attempt: { claim, run },
      report: { ending, ...report },
      transition,
      ranMs,
      emit: this.#emit,
      listens: this.#listens,
      meter: this.#meter,
    });
    await callRemoteHooks(this.#hooks, { claim, run, ending, transition, ...report });
  }

  async #requireEnded(
    store: Store,
    { id, fence }: Grant,
    { ending: { kind }, result }: { readonly ending: Ending; readonly result: string | null },
  ): Promise<void> {
    const attempts = isUuid(id) ? await store.runs.attempts(id) : [];
    const ended = attempts.find((attempt) => attempt.fence === fence);
    // A run with a requested cancel is cancelled when it fails or is handed back. A reclaimed run ended without
    // its worker.
    const ends: readonly (string | undefined)[] =
      kind === "completed" ? [kind] : [kind, "cancelled"];
    const isSameEnd = ended && ends.includes(ended.end) && !isTakenAway(ended.error);
    if (!isSameEnd) throw new LeaseLostError(id, fence);
    if (kind !== "completed") return;
    const stored = await store.runs.get(id);
    if (stored && !isSameResult(result, stored.result)) throw new ResultConflictError(id, fence);
  }
}

/** Every run shows its items by outcome, so a worker that makes up outcomes without end would fill every list. */
function requireFewOutcomes(chosen: ReadonlySet<string>, run: RunRecord | null): void {
  const known = Object.keys(run?.items ?? {}).filter(isChosenOutcome);
  if (new Set([...known, ...chosen]).size <= OUTCOMES_MAX) return;
  const message = `a run has at most ${OUTCOMES_MAX} outcomes besides "ok" and "failed"`;
  throw new ConfigurationError([{ field: "items", message }]);
}

/** Whether the run was claimed with this caller's credential, by the worker that it names, within its limits. */
function isClaimer({ claim, instance, remoteBy }: HeldRun, caller: RemoteCaller): boolean {
  if (remoteBy !== caller.by || (caller.instance ?? instance) !== instance) return false;
  return isWithin(claim, caller);
}

function isWithin(
  { job, queue }: Pick<RunRecord, "job" | "queue">,
  { jobs = [job], queues = [queue] }: RemoteCaller,
): boolean {
  return jobs.includes(job) && queues.includes(queue);
}
