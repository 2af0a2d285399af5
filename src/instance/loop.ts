// Decides when the passes of an instance run. This is the only place that waits: a poll at its interval or at the next
// due time, heartbeats at a third of the shortest lease, retention once an hour. Correctness rests on polling alone: a
// wake-up only makes a poll earlier, and a late or early timer never matters.

import { POLLED_WITHIN_MS } from "../schedules/advance.js";
import type { Looked, TickReport } from "../schedules/ticker.js";
import { StoreGoneError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { elapsedMs, type Moment } from "../shared/moment.js";
import { delay, momentOf, type Ports, type Timer } from "../shared/ports.js";
import type { GlobalPause } from "../store/pause.js";
import type { Appetite, PollAnswer, Settlement, Store } from "../store/store.js";
import { ClockWatch } from "../telemetry/clock-watch.js";
import type { Emit } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import {
  beatOnce,
  enforceCancelsOnce,
  type LeaseHeartbeat,
  promoteOnce,
  reapOnce,
} from "../worker/passes.js";
import type { Workers } from "../worker/pool.js";
import { renewEveryMs } from "../worker/rules/lease.js";

const POLL_JITTER = 0.2;
/** After failed polls: no more than this beyond the interval, so that an outage delays reclaims no longer. */
const BACKOFF_MORE_MS = 1_000;
const BACKOFF_MAX_MS = 10_000;
const TIDY_EVERY_MS = 60 * 60_000;
/** The first retention pass waits until a fresh instance has settled in. */
const TIDY_FIRST_MS = 60_000;
/** How often stored schedules are compared with the declarations of live instances. */
const LOOK_EVERY_MS = 60_000;
/** A heartbeat that is late by less is not logged: on a busy machine that is normal. */
const LATE_MIN_MS = 250;
/** The delay after a failed renewal; the lease runs out meanwhile. */
const BEAT_RETRY_MS = 250;

export type LoopParams = {
  readonly store: Store;
  readonly heartbeat: LeaseHeartbeat;
  readonly ports: Ports;
  readonly worker: Workers;
  readonly holder: number;
  readonly instanceId: string;
  readonly appetite: () => Appetite;
  readonly pollMs: number;
  /** Removes a bounded amount of rows past their retention. */
  readonly prune: () => Promise<void>;
  readonly emit: Emit;
  readonly meter: Meter;
  /** Fires due schedules; null if the scheduler is off. */
  readonly tick: ((looked: Looked) => Promise<TickReport>) | null;
  /** Opens the gates of runs whose turn has come; for an instance without a scheduler. */
  readonly release: () => Promise<TickReport>;
  /** Maintenance of schedules, only if the scheduler is on; null: none each minute. */
  readonly lookEachMinute: (() => Promise<void>) | null;
  readonly lookEachHour: () => Promise<void>;
  /** Evaluates alerts; returns in how many milliseconds to retry a delivery. Null: alerts are off. */
  readonly alert: (() => Promise<number>) | null;
  /** Ends locks whose lease ran out and removes old history, if a minute has passed. */
  readonly tidyLocks: () => Promise<void>;
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
  #isBeating = false;
  #isBeatingOver = false;
  #beatAtMs: number | null = null;
  /** The lease that set the time of the next heartbeat. */
  #beatLeaseMs = 0;
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
    this.#set("tidy", TIDY_FIRST_MS, () => this.#tidy());
    this.#set("locks", this.#eachMinuteMs, () => this.#tidyLocks());
    const { tick, lookEachMinute, alert } = this.#params;
    if (alert) this.#set("alerts", this.#eachMinuteMs, () => this.#alert(alert));
    if (tick && lookEachMinute) this.#set("look", LOOK_EVERY_MS, () => this.#look(lookEachMinute));
    void this.#poll();
  }

  /** Ends polling; heartbeats go on, as runs may still be ending. */
  stopPolling(): void {
    this.#stopListening?.();
    for (const name of ["poll", "tidy", "look", "locks", "alerts"])
      this.#timers.get(name)?.cancel();
    this.#isStopped = true;
  }

  stopBeating(): void {
    this.#timers.get("beat")?.cancel();
    this.#timers.delete("beat");
    this.#isBeatingOver = true;
  }

  async #poll(): Promise<void> {
    if (this.#isStopped || this.#isPolling) return;
    this.#isPolling = true;
    let nextMs: number;
    const sentAt = this.#moment();
    try {
      const polled = await this.#params.store.poll({
        ...this.#params.appetite(),
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
  #measure(sentAt: Moment, { now }: PollAnswer): void {
    const gotAt = this.#moment();
    const { wallMs, monotonicMs } = gotAt;
    this.#clocks.observe({ sentAt, gotAt, now });
    const tookMs = monotonicMs - sentAt.monotonicMs;
    this.#params.meter.polled({ tookMs, skewMs: (sentAt.wallMs + wallMs) / 2 - now });
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

  /** Acts on a poll; returns in how many milliseconds the next poll has more to do, as far as the passes know. */
  async #act(answer: PollAnswer): Promise<number> {
    const { store, worker, ports } = this.#params;
    this.#applyPause(answer.halt);
    worker.cancelRequested(answer.cancelRequested);
    worker.relieve();
    this.#hasGated = answer.hasGated;
    // Before the ticks: after an outage there are many of them, and a reclaim must not wait for them.
    if (answer.hasExpired) await this.#reclaim();
    const report =
      answer.hasDueSchedule || answer.hasFreeGate ? await this.#tickWithinPoll(answer) : undefined;
    if (report) this.#ticked(report);
    if (answer.hasDue && (await promoteOnce(store)) > 0) worker.wake();
    if (answer.hasOverdueCancel) await enforceCancelsOnce(store, ports.chance.next());
    if (answer.hasReady) worker.wake();
    if (answer.hasLimited) worker.wakeForLimited();
    if (answer.hasSuspect) worker.wakeForSuspect();
    return report ? untilNextTick(report) : Number.POSITIVE_INFINITY;
  }

  #ticked({ hasGated, hasReadied }: TickReport): void {
    this.#hasGated ||= hasGated;
    if (hasReadied) this.#params.worker.wake();
  }

  /**
   * Returns the report of the pass over schedules if it ends before the next poll. Polls do not wait for it: after an
   * outage, or on a silent connection, it takes long, and reclaims must not wait.
   */
  async #tickWithinPoll(answer: PollAnswer): Promise<TickReport | undefined> {
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

  async #reclaim(): Promise<void> {
    const { store, worker, ports, emit, heartbeat, holder } = this.#params;
    // Our own leases first: an expired lease that no instance has reclaimed may be renewed.
    await beatOnce({ worker, heartbeat, holder, clock: ports.clock });
    const chance = () => ports.chance.next();
    if ((await reapOnce({ store, chance, emit })).reclaimed === 0) return;
    worker.wakeForSuspect();
    // Runs that were claimed but never started are ready again.
    worker.wake();
  }

  /** While everything is paused, the database refuses claims; an instance that is quiet has to stop its own worker. */
  #applyPause(halt: GlobalPause | null): void {
    const { worker, emit, instanceId: instance } = this.#params;
    worker.setPaused(halt?.kind === "quiet");
    const isPaused = halt !== null;
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (halt) emit("instance.halted", { instance, why: halt.kind, note: halt.note });
    else emit("instance.resumed", { instance });
  }

  /** A failed pass handled nothing: until one succeeds, `lastPolledAt` stays as it was before the failure. */
  async #tick({ lastPolledAt, hasDueSchedule }: PollAnswer): Promise<TickReport | undefined> {
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

  #moment(): Moment {
    return momentOf(this.#params.ports.clock);
  }

  /** Runs have ended: a run that is gated behind them should not wait for the next regular poll. */
  settled(settlements: readonly Settlement[]): void {
    if (!this.#hasGated) return;
    const isAwaited = settlements.some(({ schedule, to }) => schedule !== null && to !== "pending");
    if (isAwaited) this.pollWithin(1);
  }

  /** Jittered, so that instances that started together do not always poll together. */
  #untilNextPoll({ now, nextWakeAt }: PollAnswer): number {
    const { pollMs, ports } = this.#params;
    const regularMs = pollMs * (1 + POLL_JITTER * (2 * ports.chance.next() - 1));
    return nextWakeAt === null ? regularMs : Math.max(1, Math.min(regularMs, nextWakeAt - now));
  }

  /** Workers hold new leases: the next heartbeat is due a third of the shortest lease from now. */
  claimed(): void {
    const leaseMs = this.#params.worker.leases.shortestMs();
    this.#params.heartbeat.changed();
    if (leaseMs === null || this.#isBeating) return;
    this.#beatWithin(renewEveryMs(leaseMs), leaseMs);
  }

  #beatWithin(delayMs: number, leaseMs: number): void {
    const atMs = this.#params.ports.clock.monotonicMs() + delayMs;
    if (this.#beatAtMs !== null && this.#beatAtMs <= atMs) return;
    this.#beatAtMs = atMs;
    this.#beatLeaseMs = leaseMs;
    this.#set("beat", delayMs, () => this.#beat());
  }

  async #beat(): Promise<void> {
    this.#noteLate();
    this.#beatAtMs = null;
    if (this.#isBeatingOver || this.#isBeating) return;
    this.#isBeating = true;
    const { worker, heartbeat, holder, ports } = this.#params;
    let retryInMs = Number.POSITIVE_INFINITY;
    try {
      await beatOnce({ worker, heartbeat, holder, clock: ports.clock });
    } catch (error) {
      // The lease is not extended: it runs out unless a later renewal succeeds.
      retryInMs = BEAT_RETRY_MS;
      this.#failed("heartbeat", error, retryInMs);
    } finally {
      this.#isBeating = false;
    }
    const leaseMs = worker.leases.shortestMs();
    if (leaseMs !== null) this.#beatWithin(Math.min(renewEveryMs(leaseMs), retryInMs), leaseMs);
  }

  /** Logs a late heartbeat: a handler blocked the event loop, or the whole process was suspended. */
  #noteLate(): void {
    const { worker, heartbeat, ports, emit } = this.#params;
    if (this.#beatAtMs === null || !heartbeat.isOnMainThread) return;
    const lateMs = Math.round(ports.clock.monotonicMs() - this.#beatAtMs);
    if (lateMs < Math.max(LATE_MIN_MS, renewEveryMs(this.#beatLeaseMs) / 2)) return;
    const jobs = worker.jobsSince(this.#beatAtMs);
    // The blocking handler may have ended by now; without runs and leases nothing was at stake.
    if (jobs.length === 0 && worker.leases.shortestMs() === null) return;
    emit("heartbeat.late", { lateMs, leaseMs: this.#beatLeaseMs, jobs });
  }

  async #tidy(): Promise<void> {
    const { prune } = this.#params;
    try {
      await prune();
      if (this.#params.tick) await this.#params.lookEachHour();
    } catch (error) {
      this.#failed("tidy", error, TIDY_EVERY_MS);
    }
    this.#set("tidy", TIDY_EVERY_MS, () => this.#tidy());
  }

  /** A poll interval above a minute applies to these passes too. */
  get #eachMinuteMs(): number {
    return Math.max(LOOK_EVERY_MS, this.#params.pollMs);
  }

  async #tidyLocks(): Promise<void> {
    const { tidyLocks } = this.#params;
    const retryInMs = this.#eachMinuteMs;
    try {
      await tidyLocks();
    } catch (error) {
      this.#failed("locks", error, retryInMs);
    }
    this.#set("locks", retryInMs, () => this.#tidyLocks());
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

  async #look(lookEachMinute: () => Promise<void>): Promise<void> {
    try {
      await lookEachMinute();
    } catch (error) {
      this.#failed("schedules", error, LOOK_EVERY_MS);
    }
    this.#set("look", LOOK_EVERY_MS, () => this.#look(lookEachMinute));
  }

  #failed(what: string, error: unknown, retryInMs: number): void {
    this.#params.emit("store.failed", { what, error: describeFailure(error), retryInMs }, error);
  }

  #set(name: string, delayMs: number, callback: () => unknown): void {
    this.#timers.get(name)?.cancel();
    if (this.#isStopped && name !== "beat") return;
    if (this.#isBeatingOver && name === "beat") return;
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
