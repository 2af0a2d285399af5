// `holdfast.lock`: takes a lock, runs the caller's function under it, and releases it. A grant whose response was lost is
// recognised by its token; a holder that is no longer sure of its lease throws. The folder uses providers only: it must never
// assume that locks are in the database.

import { type Duration, durationMs } from "../shared/duration.js";
import {
  ConfigurationError,
  LeaseLostError,
  OutcomeUnknownError,
  type Problem,
  ShutdownError,
  StoppedError,
  StoreUnavailableError,
} from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { requireName, requirePriority } from "../shared/names.js";
import { delay, elapsedMs, type Moment, momentOf, type Ports } from "../shared/ports.js";
import { gather } from "../shared/problems.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Emit } from "../telemetry/log.js";
import type { TraceSpan, Tracing } from "../telemetry/tracing.js";
import { LEASE_MIN_MS } from "../worker/rules/lease.js";
import { Hold } from "./hold.js";
import type { LockAnswer, LockGrant, LockProvider, LockRequest } from "./rules/lock.js";

/** The argument of the caller's function. */
export type HeldLock = {
  readonly name: string;
  /** Grows with every grant: give it to whatever should refuse a holder that lost its lock. Null: locking is off. */
  readonly fence: number | null;
  /** Aborts when the lock is lost, or when the instance stops. */
  readonly signal: AbortSignal;
};

export type LockResult<Value> =
  | { readonly acquired: true; readonly value: Value; readonly fence: number | null }
  | {
      readonly acquired: false;
      readonly reason: "locked";
      /** Null while the lock is free, but kept for a call that has waited longer. */
      readonly holder: string | null;
      readonly until: Date | null;
    };

/** A waiter is void after 3 s of silence, so it retries far more often. */
const TRY_FIRST_MS = 20;
const TRY_MAX_MS = 250;
const TRY_JITTER = 0.2;
/** How often a request with a lost response is repeated before the caller gets the error. */
const REPEATS_MAX = 5;
const REPEAT_MS = 50;
/** How long a stop waits for functions that ignore their signal; their leases expire. */
const STOP_MS = 5_000;
/** A little less than the loop's minute: timers may fire early. */
const RETENTION_EVERY_MS = 55_000;
/** Without held locks, as in most applications, an idle instance sends only polls. */
const RETENTION_IDLE_MS = 55 * 60_000;
const RETENTION_BATCH = 1_000;
const RETENTION_ROUNDS_MAX = 20;

export type LockingParams = {
  /** Opens the database if the locks are in it. */
  readonly provider: (verb: string) => Promise<LockProvider>;
  readonly ports: Ports;
  readonly holder: string;
  readonly leaseMs: number;
  readonly isEnabled: boolean;
  /** How long history is kept. */
  readonly keepMs: number;
  readonly emit: Emit;
  readonly tracing: Tracing | null;
};

type Granted = { readonly hold: Hold; readonly fence: number };

export class Locking {
  readonly #params: LockingParams;
  readonly #holds = new Set<Hold>();
  readonly #ending = new Set<Promise<unknown>>();
  readonly #stopping = new AbortController();
  /** Calls of this process that wait for a name: a release here wakes them at once. */
  readonly #waiting = new Map<string, Set<() => void>>();
  #retentionAtMs: number | null = null;
  /** Whether a lease may have run out since then. */
  #isInUse = true;
  #hasWarned = false;

  constructor(params: LockingParams) {
    this.#params = params;
  }

  async lock<Value>(
    name: string,
    options: LockOptions,
    fn: (lock: HeldLock) => Value | Promise<Value>,
  ): Promise<LockResult<Value>> {
    const settings = readLockOptions(name, options, this.#params.leaseMs);
    if (typeof fn !== "function") {
      const message = "must be a function, for example async ({ fence, signal }) => { … }";
      throw new ConfigurationError([{ field: "lock(name, options, fn)", message }]);
    }
    if (this.#stopping.signal.aborted) throw new StoppedError("lock");
    if (!this.#params.isEnabled) return this.#unprotected(name, fn);
    const provider = await this.#params.provider("lock");
    this.#isInUse = true;
    const locked = this.#span("lock", name, (span) =>
      this.#locked({ provider, name, settings, fn }).then((result) => {
        span?.end(result.acquired ? "released" : "refused");
        return result;
      }),
    );
    this.#ending.add(locked);
    // The caller gets the error; a stop only waits for the end.
    locked.catch(() => undefined).finally(() => this.#ending.delete(locked));
    return locked;
  }

  async #locked<Value>(call: {
    readonly provider: LockProvider;
    readonly name: string;
    readonly settings: LockSettings;
    readonly fn: (lock: HeldLock) => Value | Promise<Value>;
  }): Promise<LockResult<Value>> {
    const { provider, name, fn } = call;
    const response = await this.#span("lock.wait", name, () => this.#acquired(call));
    if (!("hold" in response)) return response;
    const { hold, fence } = response;
    const grant = { name, fence };
    this.#holds.add(hold);
    const heldSince = this.#moment();
    const ended = (await hold.begin())
      ? await this.#span("lock.hold", name, () =>
          outcomeOf(() => fn({ name, fence, signal: hold.signal })),
        )
      : { error: undefined };
    const wasTrusted = hold.isTrusted;
    hold.end();
    this.#holds.delete(hold);
    const { isLost } = hold;
    const isReleased = await this.#span("lock.release", name, () =>
      this.#released({ provider, grant, isLost, wasTrusted, heldSince }),
    );
    this.#wake(name);
    void this.retentionIfDue().catch(() => undefined);
    if (hold.isLost || !isReleased) {
      const cause = "error" in ended ? { cause: ended.error } : undefined;
      throw new LeaseLostError({ lock: name }, fence, cause);
    }
    if ("error" in ended) throw ended.error;
    return { acquired: true, value: ended.value, fence };
  }

  /** A span of the trace, if tracing is on. */
  #span<T>(part: string, lock: string, work: (span: TraceSpan | null) => Promise<T>): Promise<T> {
    const { tracing } = this.#params;
    return tracing ? tracing.part(`${part} ${lock}`, { "holdfast.lock": lock }, work) : work(null);
  }

  /** Retries until the lock is granted or the caller's wait is over. */
  async #acquired({
    provider,
    name,
    settings: { leaseMs, waitMs, priority, execution },
  }: {
    readonly provider: LockProvider;
    readonly name: string;
    readonly settings: LockSettings;
  }): Promise<Granted | (LockResult<never> & { readonly acquired: false })> {
    const { ports, holder, emit } = this.#params;
    const token = ports.ids.unique();
    const waiting = waitMs > 0 ? { priority } : null;
    const request: LockRequest = { name, token, holder, leaseMs, waiting, execution };
    const facts = execution === null ? {} : { execution };
    const beganAt = this.#moment();
    for (let tries = 1; ; tries += 1) {
      const sentAt = this.#moment();
      const response = await this.#requested(provider, request);
      if (response.isGranted) {
        const { fence, takenFrom } = response;
        if (takenFrom !== null)
          emit("lock.taken_over", { lock: name, fence, holder: takenFrom, ...facts });
        const waitedMs = Math.round(elapsedMs(beganAt, this.#moment()));
        emit("lock.acquired", { lock: name, fence, holder, waitedMs, ...facts });
        const onLost = () => emit("lock.lost", { lock: name, fence });
        const grantedMs = response.leaseMs;
        const { clock } = ports;
        const grant = { name, fence };
        const held = { provider, clock, grant, leaseMs, sentAt, grantedMs, onLost };
        return { hold: new Hold(held), fence };
      }
      const leftMs = waitMs - elapsedMs(beganAt, this.#moment());
      if (leftMs <= 0 || this.#stopping.signal.aborted) {
        if (waiting) await provider.leaveQueue({ name, token }).catch(() => undefined);
        if (this.#stopping.signal.aborted) throw new StoppedError("lock");
        emit("lock.refused", { lock: name, holder: response.holder, ...facts });
        const until = response.until === null ? null : new Date(response.until);
        return { acquired: false, reason: "locked", holder: response.holder, until };
      }
      await this.#pause(name, Math.min(leftMs, this.#tryInMs(tries)));
    }
  }

  /** Repeats a request whose response was lost: the token makes it the same grant. */
  async #requested(provider: LockProvider, request: LockRequest): Promise<LockAnswer> {
    return this.#repeated(() => provider.acquire(request));
  }

  /** A lock that could not be released expires by itself; the function has ended. */
  async #released({
    provider,
    grant,
    isLost,
    wasTrusted,
    heldSince,
  }: {
    readonly provider: LockProvider;
    readonly grant: LockGrant;
    readonly isLost: boolean;
    /** When the function ended. */
    readonly wasTrusted: boolean;
    readonly heldSince: Moment;
  }): Promise<boolean> {
    const { emit } = this.#params;
    try {
      // Lost for lack of a response: the lock may still be ours, and another call may wait for it.
      if (isLost) return await provider.release(grant);
      const isReleased = await this.#repeated(() => provider.release(grant));
      const facts = { lock: grant.name, fence: grant.fence };
      const heldMs = Math.round(elapsedMs(heldSince, this.#moment()));
      if (isReleased) emit("lock.released", { ...facts, heldMs });
      else emit("lock.lost", facts);
      return isReleased;
    } catch (error) {
      const failure = describeFailure(error);
      emit("lock.unreleased", { lock: grant.name, fence: grant.fence, error: failure });
      return wasTrusted;
    }
  }

  async #repeated<T>(request: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await request();
      } catch (error) {
        const mayPass =
          error instanceof OutcomeUnknownError || error instanceof StoreUnavailableError;
        if (!mayPass || tries >= REPEATS_MAX) throw error;
        await delay(this.#params.ports.clock, REPEAT_MS * 2 ** tries);
      }
    }
  }

  /** Locking is off: the function runs without mutual exclusion. */
  async #unprotected<Value>(
    name: string,
    fn: (lock: HeldLock) => Value | Promise<Value>,
  ): Promise<LockResult<Value>> {
    this.warnIfDisabled();
    const { signal } = this.#stopping;
    return { acquired: true, value: await fn({ name, fence: null, signal }), fence: null };
  }

  /** Each start logs whether locks are on. */
  logState(): void {
    const { isEnabled, emit, holder, leaseMs } = this.#params;
    if (isEnabled) emit("locking.enabled", { instance: holder, leaseMs });
    else this.warnIfDisabled();
  }

  /** Logged by each start, and by the first lock of a process that was not started. */
  warnIfDisabled(): void {
    if (this.#params.isEnabled || this.#hasWarned) return;
    this.#hasWarned = true;
    this.#params.emit("locking.disabled", { instance: this.#params.holder });
  }

  /** Ends expired locks and applies retention, once a minute while there are locks: from the loop, or after a lock. */
  async retentionIfDue(): Promise<void> {
    const { ports, isEnabled, keepMs, emit } = this.#params;
    const nowMs = ports.clock.monotonicMs();
    const everyMs = this.#isInUse ? RETENTION_EVERY_MS : RETENTION_IDLE_MS;
    const isDue = this.#retentionAtMs === null || nowMs - this.#retentionAtMs >= everyMs;
    if (!isEnabled || !isDue || this.#stopping.signal.aborted) return;
    this.#retentionAtMs = nowMs;
    this.#isInUse = false;
    const provider = await this.#params.provider("lock");
    for (let round = 0; round < RETENTION_ROUNDS_MAX; round += 1) {
      const { expired, removed, held } = await provider.tidy({ keepMs, limit: RETENTION_BATCH });
      this.#isInUse ||= held > 0;
      for (const { name, fence, holder } of expired)
        emit("lock.expired", { lock: name, fence, holder });
      if (expired.length < RETENTION_BATCH && removed < RETENTION_BATCH) return;
    }
  }

  /** Waiting calls end at once; functions under a lock have `graceMs`, then their signal aborts. */
  async stop({ graceMs }: { readonly graceMs: number }): Promise<void> {
    this.#stopping.abort(new ShutdownError());
    await this.#allEnded(graceMs);
    for (const hold of this.#holds) hold.abort(new ShutdownError());
    await this.#allEnded(STOP_MS);
    for (const hold of this.#holds) hold.end();
  }

  async #allEnded(limitMs: number): Promise<void> {
    if (this.#ending.size === 0) return;
    const done = new AbortController();
    const tooLate = delay(this.#params.ports.clock, limitMs, done.signal);
    await Promise.race([Promise.allSettled([...this.#ending]), tooLate]);
    done.abort("ended");
  }

  async #pause(name: string, delayMs: number): Promise<void> {
    const woken = new AbortController();
    const wake = () => woken.abort("woken");
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting.add(wake));
    this.#stopping.signal.addEventListener("abort", wake, { once: true });
    await delay(this.#params.ports.clock, delayMs, woken.signal);
    this.#stopping.signal.removeEventListener("abort", wake);
    waiting.delete(wake);
    if (waiting.size === 0) this.#waiting.delete(name);
  }

  #wake(name: string): void {
    for (const wake of [...(this.#waiting.get(name) ?? [])]) wake();
  }

  /** Jittered, so that calls that began together do not retry together. */
  #tryInMs(tries: number): number {
    const regularMs = Math.min(TRY_MAX_MS, TRY_FIRST_MS * 2 ** Math.min(tries - 1, 10));
    return regularMs * (1 + TRY_JITTER * (2 * this.#params.ports.random.next() - 1));
  }

  #moment(): Moment {
    return momentOf(this.#params.ports.clock);
  }
}

async function outcomeOf<Value>(
  fn: () => Value | Promise<Value>,
): Promise<{ readonly value: Value } | { readonly error: unknown }> {
  try {
    return { value: await fn() };
  } catch (error) {
    return { error };
  }
}

// ── the options of a lock ──

export type LockOptions = {
  /** How long the lock outlives a holder that died; renewed while the function runs. @default HOLDFAST_LOCK_LEASE, else "6m" */
  readonly lease?: Duration | undefined;
  /** How long to wait for it. @default not at all */
  readonly wait?: Duration | undefined;
  /** The order of waiting calls: larger is served first, from -100 to 100. @default 0 */
  readonly priority?: number | undefined;
  /** The execution that it is for, kept with the grant, and in every log line. @default none; with `ctx.lock` the run's id */
  readonly execution?: string | undefined;
};

export type LockSettings = {
  readonly execution: string | null;
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly priority: number;
};

function readLockOptions(
  name: unknown,
  options: LockOptions,
  defaultLeaseMs: number,
): LockSettings {
  requireName(name, "lock(name)");
  if (typeof options !== "object" || options === null) {
    const message = 'must be an object, for example { lease: "5m" }';
    throw new ConfigurationError([{ field: "lock().options", message }]);
  }
  const problems: Problem[] = refuseUnknownMembers(
    options,
    ["lease", "wait", "priority", "execution"],
    "lock()",
  );
  const read = (take: () => number): number => gather(problems, take, 0);
  const { lease = defaultLeaseMs, wait = 0, priority = 0, execution } = options;
  if (execution !== undefined)
    gather(problems, () => requireName(execution, "lock().execution"), "");
  const settings = {
    execution: execution ?? null,
    leaseMs: read(() => durationMs(lease, "lock().lease", { min: LEASE_MIN_MS })),
    waitMs: read(() => durationMs(wait, "lock().wait")),
    priority: read(() => requirePriority(priority, "lock().priority")),
  };
  if (problems.length > 0) throw new ConfigurationError(problems);
  return settings;
}
