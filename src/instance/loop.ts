// Decides for an instance when its passes run. This is the only place that waits: for a poll at its interval or at the
// next due time, for heartbeats at a third of the shortest lease, for retention once an hour. Correctness rests on
// polling alone: a wake-up only makes a poll earlier, and a late or early timer never matters.

import { POLLED_WITHIN_MS } from "../schedules/advance.js";
import type { PollContext, TickReport } from "../schedules/ticker.js";
import { StoreGoneError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import {
  delay,
  elapsedMs,
  type Moment,
  momentOf,
  type Ports,
  type Timer,
} from "../shared/ports.js";
import type { Settlement } from "../store/claims.js";
import type { ClaimScope } from "../store/instances.js";
import type { GlobalPause } from "../store/pause.js";
import type { Store } from "../store/store.js";
import type { PollResult } from "../store/work.js";
import { ClockWatch } from "../telemetry/clock-watch.js";
import type { Emit } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import {
  enforceCancelsOnce,
  type LeaseHeartbeat,
  promoteOnce,
  reclaimOnce,
  renewOnce,
  wakeOnce,
} from "../worker/passes.js";
import type { Workers } from "../worker/pool.js";
import { renewEveryMs } from "../worker/rules/lease.js";

const POLL_JITTER = 0.2;
/** After failed polls: no more than this beyond the interval, so that an outage delays reclaims no longer. */
const BACKOFF_MORE_MS = 1_000;
const BACKOFF_MAX_MS = 10_000;
const MINUTE_MS = 60_000;
const RETENTION_EVERY_MS = 60 * MINUTE_MS;
/** The first retention pass waits until a fresh instance has settled in. */
const RETENTION_FIRST_MS = 60_000;
/** A heartbeat that is late by less is not logged: on a busy machine that is normal. */
const LATE_MIN_MS = 250;
/** The delay after a failed renewal; the lease runs out meanwhile. */
const HEARTBEAT_RETRY_MS = 250;

export type LoopParams = {
  readonly store: Store;
  readonly heartbeat: LeaseHeartbeat;
  readonly ports: Ports;
  readonly worker: Workers;
  readonly holder: number;
  readonly instanceId: string;
  /** The jobs and queues that it executes. */
  readonly executes: () => ClaimScope;
  readonly pollMs: number;
  /** Removes a bounded amount of rows past their retention. */
  readonly prune: () => Promise<void>;
  readonly emit: Emit;
  readonly meter: Meter;
  /** Fires due schedules; null if the scheduler is off. */
  readonly tick: ((context: PollContext) => Promise<TickReport>) | null;
  /** Opens the gates of runs whose turn has come; for an instance without a scheduler. */
  readonly release: () => Promise<TickReport>;
  /** Compares stored schedules with the declarations of live instances, if the scheduler is on. Null: not wanted. */
  readonly reportVanished: (() => Promise<void>) | null;
  /** Recomputes stored schedules, if the scheduler is on. */
  readonly recomputeSchedules: () => Promise<void>;
  /** Evaluates alerts; returns in how many milliseconds to retry a delivery. Null: alerts are off. */
  readonly alert: (() => Promise<number>) | null;
  /** Ends locks whose lease ran out and removes old history, if a minute has passed. */
  readonly maintainLocks: () => Promise<void>;
  /** The database was replaced or removed: nothing more may be stored in it. */
  readonly onGone: (error: StoreGoneError) => void;
};

export class Loop {
  readonly #params: LoopParams;
  readonly #timers = new Map<string, Timer>();
  #isStopped = false;
  #pollFailures = 0;
  readonly #clocks: ClockWatch;
  #isPolling = false;
  #hasGated = false;
  #isPaused = false;
  #unseenSince: number | null | undefined;
  /** The pass over schedules under way. */
  #ticking: Promise<TickReport | undefined> | null = null;
  #polledAt: Moment | null = null;
  #pollAtMs: number | null = null;
  #soonestMs = Number.POSITIVE_INFINITY;
  #isRenewing = false;
  #isHeartbeatOver = false;
  #heartbeatAtMs: number | null = null;
  /** The lease that set the time of the next heartbeat. */
  #heartbeatLeaseMs = 0;
  #stopListening: (() => void) | null = null;

  constructor(params: LoopParams) {
    this.#params = params;
    this.#clocks = new ClockWatch({ emit: params.emit, instance: params.instanceId });
  }

  start(): void {
    const { store, worker } = this.#params;
    // Runs that this instance stored have already woken its workers.
    this.#stopListening = store.onWake(({ isOwn }) => {
      if (!isOwn) worker.wake();
    });
    const { tick, reportVanished, alert, maintainLocks } = this.#params;
    const eachMinuteMs = this.#eachMinuteMs;
    const applyRetention = () => this.#applyRetention();
    this.#set("retention", RETENTION_FIRST_MS, () =>
      this.#repeat("retention", RETENTION_EVERY_MS, applyRetention),
    );
    this.#set("locks", eachMinuteMs, () => this.#repeat("locks", eachMinuteMs, maintainLocks));
    if (alert) this.#set("alerts", eachMinuteMs, () => this.#alert(alert));
    if (tick && reportVanished)
      this.#set("schedules", MINUTE_MS, () => this.#repeat("schedules", MINUTE_MS, reportVanished));
    void this.#poll();
  }

  /** Ends polling; heartbeats go on, as runs may still be ending. */
  stopPolling(): void {
    this.#stopListening?.();
    for (const [name, timer] of this.#timers) if (name !== "heartbeat") timer.cancel();
    this.#isStopped = true;
  }

  stopHeartbeat(): void {
    this.#timers.get("heartbeat")?.cancel();
    this.#timers.delete("heartbeat");
    this.#isHeartbeatOver = true;
  }

  // ── polling ────────────────────────────────────────────────────────────────────────────────────

  async #poll(): Promise<void> {
    if (this.#isStopped || this.#isPolling) return;
    this.#isPolling = true;
    let nextMs: number;
    const sentAt = this.#moment();
    try {
      const polled = await this.#params.store.work.poll({
        ...this.#params.executes(),
        holder: this.#params.holder,
        isScheduler: this.#params.tick !== null,
      });
      this.#measure(sentAt, polled);
      if (this.#pollFailures > 0) this.#params.emit("store.recovered", { what: "poll" });
      this.#pollFailures = 0;
      const wantedMs = await this.#act(polled);
      if (!this.#ticking) this.#polledAt = this.#moment();
      nextMs = Math.min(wantedMs, this.#untilNextPoll(polled));
    } catch (error) {
      if (error instanceof StoreGoneError) return this.#params.onGone(error);
      this.#pollFailures += 1;
      const { pollMs } = this.#params;
      const doubledMs = pollMs * 2 ** Math.min(this.#pollFailures - 1, 10);
      nextMs = Math.min(BACKOFF_MAX_MS, pollMs + BACKOFF_MORE_MS, doubledMs);
      if (!this.#isStopped) this.#failed("poll", error, nextMs);
    } finally {
      this.#isPolling = false;
    }
    this.#pollAtMs = null;
    this.pollWithin(nextMs);
  }

  /** Compares the clocks: the database read its time between request and response, by assumption in the middle. */
  #measure(sentAt: Moment, { now }: PollResult): void {
    const gotAt = this.#moment();
    const { wallMs, monotonicMs } = gotAt;
    this.#clocks.observe({ sentAt, gotAt, now });
    const tookMs = monotonicMs - sentAt.monotonicMs;
    this.#params.meter.polled({ tookMs, skewMs: (sentAt.wallMs + wallMs) / 2 - now });
  }

  /** Jittered, so that instances that started together do not always poll together. */
  #untilNextPoll({ now, nextWakeAt }: PollResult): number {
    const { pollMs, ports } = this.#params;
    const regularMs = pollMs * (1 + POLL_JITTER * (2 * ports.random.next() - 1));
    return nextWakeAt === null ? regularMs : Math.max(1, Math.min(regularMs, nextWakeAt - now));
  }

  /** A hint: something becomes due after `delayMs`, so the next poll is no later. */
  pollWithin(delayMs: number): void {
    if (this.#isPolling) {
      this.#soonestMs = Math.min(this.#soonestMs, delayMs);
      return;
    }
    const waitMs = Math.min(delayMs, this.#soonestMs);
    this.#soonestMs = Number.POSITIVE_INFINITY;
    const atMs = this.#params.ports.clock.monotonicMs() + waitMs;
    if (this.#pollAtMs !== null && this.#pollAtMs <= atMs) return;
    this.#pollAtMs = atMs;
    this.#set("poll", waitMs, () => {
      this.#params.meter.timerFired(this.#params.ports.clock.monotonicMs() - atMs);
      return this.#poll();
    });
  }

  /** Runs have ended: a run that is gated behind them, or has called one of them, should not wait for the next regular poll. */
  settled(settlements: readonly Settlement[]): void {
    const isAwaited = ({ schedule, batch, mayWait, to }: Settlement) =>
      to !== "pending" && (mayWait || batch !== null || (this.#hasGated && schedule !== null));
    if (settlements.some(isAwaited)) this.pollWithin(1);
  }

  // ── acting on a poll ────────────────────────────────────────────────────────────────────────────

  /** Acts on a poll; returns in how many milliseconds the next poll has more to do, as far as the passes know. */
  async #act(answer: PollResult): Promise<number> {
    const { store, worker, ports } = this.#params;
    this.#applyPause(answer.pause);
    worker.cancelRequested(answer.cancelRequested);
    worker.relieve();
    this.#hasGated = answer.hasGated;
    // Before the ticks: after an outage there are many of them, and a reclaim must not wait for them.
    if (answer.hasExpired) await this.#reclaim();
    const report =
      answer.hasDueSchedule || answer.hasFreeGate ? await this.#tickWithinPoll(answer) : undefined;
    if (report) this.#ticked(report);
    const hasWoken = answer.hasWakes && (await wakeOnce(store, () => ports.random.next())) > 0;
    if ((answer.hasDue || hasWoken) && (await promoteOnce(store)) > 0) worker.wake();
    if (answer.hasOverdueCancel) await enforceCancelsOnce(store, ports.random.next());
    if (answer.hasReady) worker.wake();
    if (answer.hasLimited) worker.wakeForLimited();
    if (answer.hasSuspect) worker.wakeForSuspect();
    return report ? untilNextTick(report) : Number.POSITIVE_INFINITY;
  }

  /** While everything is paused, the database refuses claims; an instance that is quiet has to stop its own worker. */
  #applyPause(pause: GlobalPause | null): void {
    const { worker, emit, instanceId: instance } = this.#params;
    worker.setPaused(pause?.kind === "quiet");
    const isPaused = pause !== null;
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (pause) emit("instance.halted", { instance, why: pause.kind, note: pause.note });
    else emit("instance.resumed", { instance });
  }

  async #reclaim(): Promise<void> {
    const { store, worker, ports, emit, heartbeat, holder } = this.#params;
    // Our own leases first: an expired lease that no instance has reclaimed may be renewed.
    await renewOnce({ worker, heartbeat, holder, clock: ports.clock });
    const random = () => ports.random.next();
    if ((await reclaimOnce({ store, random, emit })).reclaimed === 0) return;
    worker.wakeForSuspect();
    // Runs that were claimed but never started are ready again.
    worker.wake();
  }

  /**
   * Returns the report of the pass over schedules if it ends before the next poll. Polls do not wait for it: after an
   * outage, or on a silent connection, it takes long, and reclaims must not wait.
   */
  async #tickWithinPoll(answer: PollResult): Promise<TickReport | undefined> {
    if (this.#ticking) return undefined;
    const ticking = this.#tick(answer).finally(() => {
      this.#ticking = null;
    });
    this.#ticking = ticking;
    const done = new AbortController();
    const { pollMs, ports } = this.#params;
    const late = delay(ports.clock, pollMs, done.signal).then(() => "late" as const);
    try {
      const report = await Promise.race([ticking, late]);
      if (report !== "late") return report;
    } finally {
      done.abort();
    }
    void ticking.then(
      (report) => {
        if (!report) return;
        this.#ticked(report);
        this.pollWithin(untilNextTick(report));
      },
      (error: unknown) => {
        if (!this.#isStopped) this.#failed("schedules", error, pollMs);
      },
    );
    return undefined;
  }

  /** A failed pass handled nothing: until one succeeds, `lastPolledAt` stays as it was before the failure. */
  async #tick({ lastPolledAt, hasDueSchedule }: PollResult): Promise<TickReport | undefined> {
    if (!hasDueSchedule) return this.#params.release();
    const knownAt = this.#unseenSince === undefined ? lastPolledAt : this.#unseenSince;
    this.#unseenSince = knownAt;
    const report = await this.#params.tick?.({ lastPolledAt: knownAt, wasHere: this.#wasHere() });
    this.#unseenSince = undefined;
    return report;
  }

  /** Whether this instance has polled lately, by the clock (wall or monotonic) that shows the longer time. */
  #wasHere(): boolean {
    const last = this.#polledAt;
    if (last === null) return false;
    const agoMs = elapsedMs(last, this.#moment());
    return agoMs <= Math.max(POLLED_WITHIN_MS, 2 * this.#params.pollMs);
  }

  #ticked({ hasGated, hasReadied }: TickReport): void {
    this.#hasGated ||= hasGated;
    if (hasReadied) this.#params.worker.wake();
  }

  // ── heartbeats ──────────────────────────────────────────────────────────────────────────────────

  /** Workers hold new leases: the next heartbeat is due a third of the shortest lease from now. */
  claimed(): void {
    const leaseMs = this.#params.worker.leases.shortestMs();
    this.#params.heartbeat.changed();
    if (leaseMs === null || this.#isRenewing) return;
    this.#heartbeatWithin(renewEveryMs(leaseMs), leaseMs);
  }

  #heartbeatWithin(delayMs: number, leaseMs: number): void {
    const atMs = this.#params.ports.clock.monotonicMs() + delayMs;
    if (this.#heartbeatAtMs !== null && this.#heartbeatAtMs <= atMs) return;
    this.#heartbeatAtMs = atMs;
    this.#heartbeatLeaseMs = leaseMs;
    this.#set("heartbeat", delayMs, () => this.#heartbeat());
  }

  async #heartbeat(): Promise<void> {
    this.#noteLate();
    this.#heartbeatAtMs = null;
    if (this.#isHeartbeatOver || this.#isRenewing) return;
    this.#isRenewing = true;
    const { worker, heartbeat, holder, ports } = this.#params;
    let retryInMs = Number.POSITIVE_INFINITY;
    try {
      await renewOnce({ worker, heartbeat, holder, clock: ports.clock });
    } catch (error) {
      // The lease is not extended: it runs out unless a later renewal succeeds.
      retryInMs = HEARTBEAT_RETRY_MS;
      this.#failed("heartbeat", error, retryInMs);
    } finally {
      this.#isRenewing = false;
    }
    const leaseMs = worker.leases.shortestMs();
    if (leaseMs !== null)
      this.#heartbeatWithin(Math.min(renewEveryMs(leaseMs), retryInMs), leaseMs);
  }

  /** Logs a late heartbeat: a handler blocked the event loop, or the whole process was suspended. */
  #noteLate(): void {
    const { worker, heartbeat, ports, emit } = this.#params;
    if (this.#heartbeatAtMs === null || !heartbeat.isOnMainThread) return;
    const lateMs = Math.round(ports.clock.monotonicMs() - this.#heartbeatAtMs);
    if (lateMs < Math.max(LATE_MIN_MS, renewEveryMs(this.#heartbeatLeaseMs) / 2)) return;
    const jobs = worker.jobsSince(this.#heartbeatAtMs);
    // The blocking handler may have ended by now; without runs and leases nothing was at stake.
    if (jobs.length === 0 && worker.leases.shortestMs() === null) return;
    emit("heartbeat.late", { lateMs, leaseMs: this.#heartbeatLeaseMs, jobs });
  }

  // ── each hour and each minute ───────────────────────────────────────────────────────────────────

  /** A poll interval above a minute applies to these passes too. */
  get #eachMinuteMs(): number {
    return Math.max(MINUTE_MS, this.#params.pollMs);
  }

  async #applyRetention(): Promise<void> {
    await this.#params.prune();
    if (this.#params.tick) await this.#params.recomputeSchedules();
  }

  /** Runs a pass again and again. `what` names it in the log; the next pass does what a failed one left. */
  async #repeat(what: string, everyMs: number, pass: () => Promise<void>): Promise<void> {
    try {
      await pass();
    } catch (error) {
      this.#failed(what, error, everyMs);
    }
    this.#set(what, everyMs, () => this.#repeat(what, everyMs, pass));
  }

  async #alert(alert: () => Promise<number>): Promise<void> {
    let nextMs = this.#eachMinuteMs;
    try {
      nextMs = Math.max(1, Math.min(nextMs, await alert()));
    } catch (error) {
      if (!this.#isStopped) this.#failed("alerts", error, nextMs);
    }
    this.#set("alerts", nextMs, () => this.#alert(alert));
  }

  // ── timers ──────────────────────────────────────────────────────────────────────────────────────

  #moment(): Moment {
    return momentOf(this.#params.ports.clock);
  }

  #failed(what: string, error: unknown, retryInMs: number): void {
    this.#params.emit("store.failed", { what, error: describeFailure(error), retryInMs }, error);
  }

  #set(name: string, delayMs: number, callback: () => unknown): void {
    this.#timers.get(name)?.cancel();
    if (this.#isStopped && name !== "heartbeat") return;
    if (this.#isHeartbeatOver && name === "heartbeat") return;
    this.#timers.set(
      name,
      this.#params.ports.clock.timer(delayMs, () => void callback()),
    );
  }
}

/** In how many milliseconds there is more to fire. */
function untilNextTick({ hasMore, nextInMs }: TickReport): number {
  return hasMore ? 1 : nextInMs;
}
