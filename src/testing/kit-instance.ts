// Makes the instances of a test: the real `Holdfast`, on one database in memory that outlives each of them, with the
// test's clock, random numbers and ids. An instance can be cut off like a killed process.

import { Holdfast } from "../holdfast.js";
import type { HoldfastOptions } from "../instance/config.js";
import type { JobOf } from "../runs/job.js";
import { systemNetwork } from "../shared/adapters/network.js";
import { durationMs } from "../shared/duration.js";
import type { Network, Ports } from "../shared/ports.js";
import type { InstanceAnnouncement } from "../store/instances.js";
import type { SqliteHandle } from "../store/sqlite/connection/handle.js";
import { SqliteStore } from "../store/sqlite/store.js";
import { NEVER_MS } from "../store/steps.js";
import type { Store } from "../store/store.js";
import type { PollParams, PollResult } from "../store/work.js";
import type { Logger } from "../telemetry/log.js";
import type { AnyHandler, KitHandlers } from "./kit-handlers.js";
import { InstanceClock, SeededRandom, seededIds, type VirtualClock } from "./virtual-clock.js";
import { wrapStore } from "./wrap-store.js";

/** A test keeps all runs and ticks, unless it sets a shorter retention. */
const KEEP = "3650d";
const POLL = "1s";
/** How often an idle instance polls. */
const IDLE_POLL = "1h";
const MEMORY = "sqlite::memory:";
/** A run with a gate waits for an earlier run of its schedule. */
const ALL_ASLEEP = /* sql */ `
select not exists (select 1 from holdfast_ready) and not exists (select 1 from holdfast_lease)
  and not exists (select 1 from holdfast_wake) and not exists (select 1 from holdfast_signal where is_new)
  and exists (select 1 from holdfast_waiting where asleep_at is not null)
  and not exists (
    select 1 from holdfast_waiting where gate is null and (asleep_at is null or wake_at < :never)) as is_so`;

/** One instance, and the function that kills it. */
export type Member = { readonly holdfast: Holdfast; kill(): void };

/** Options of an instance, except its database, which belongs to the test. */
export type TestHoldfastOptions = Omit<
  HoldfastOptions,
  "database" | "schema" | "migrate" | "synchronous"
>;

/** The soonest tick of the schedules that were written since the last poll. */
type Planned = { nextAt: number | null };

type World = {
  readonly clock: VirtualClock;
  readonly handlers: KitHandlers;
  readonly seed: number;
  readonly logger: Logger;
  readonly options: TestHoldfastOptions;
};

export class KitDatabase {
  readonly #world: World;
  readonly #store: SqliteStore;
  readonly #random: SeededRandom;
  readonly #ports: Omit<Ports, "clock">;
  readonly #opened: Promise<void>;
  /** Runs of killed instances may still be leased to them. */
  #hasOrphans = false;

  constructor(world: World) {
    this.#world = world;
    const { clock, seed } = world;
    this.#random = new SeededRandom(seed);
    this.#ports = { random: this.#random, ids: seededIds(clock, this.#random) };
    this.#store = new SqliteStore({
      source: { file: ":memory:" },
      clock,
      random: this.#random,
      synchronous: "NORMAL",
      migrate: "auto",
      mayCreate: true,
      now: () => clock.wallMs(),
    });
    this.#opened = this.#store.open();
  }

  opened(): Promise<void> {
    return this.#opened;
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  get handle(): SqliteHandle {
    return this.#store.handle;
  }

  /**
   * Whether every live run sleeps without a deadline, or waits for such a run to end: no time that passes brings it on.
   * Right after a signal or the end of a called run this is not so, because its run is yet to be woken.
   */
  get isAllAsleep(): boolean {
    const found = this.#store.handle.prepare(ALL_ASLEEP).get({ never: NEVER_MS });
    return (found as { readonly is_so: number }).is_so === 1;
  }

  /** Returns an instance that only reads the database. */
  reader(): Holdfast {
    const { clock, logger } = this.#world;
    const ports = { clock, ...this.#ports };
    return new Holdfast({ database: MEMORY, logger }, { ports, store: () => this.#view(0).store });
  }

  /** Returns a class whose instances run in this test, and calls `onMade` for each. */
  holdfastClass(onMade: (member: Member) => void): new (options?: HoldfastOptions) => Holdfast {
    const { clock: base, handlers, logger, options: general } = this.#world;
    const ports = this.#ports;
    const orphaned = () => {
      this.#hasOrphans = true;
    };
    const newView = (pollMs: number) => this.#view(pollMs);
    return class TestHoldfast extends Holdfast {
      constructor(options: HoldfastOptions = {}) {
        const clock = new InstanceClock(base);
        const view = newView(durationMs(general.poll ?? options.poll ?? POLL, "poll"));
        // A test must never touch the application's own file or server.
        const { database: _, schema: __, ...own } = options;
        super(
          {
            retention: KEEP,
            ledgerRetention: KEEP,
            logger,
            ...own,
            ...general,
            poll: IDLE_POLL,
            database: MEMORY,
          },
          { ports: { ...ports, clock }, store: () => view.store, network: heldNetwork(base) },
        );
        const declare = super.job.bind(this) as (
          name: string,
          options: object,
        ) => JobOf<never, never>;
        this.job = ((name: string, given: { readonly run?: AnyHandler }) =>
          declare(
            name,
            given?.run ? { ...given, run: handlers.around(name, given.run) } : given,
          )) as Holdfast["job"];
        const kill = () => {
          clock.pause();
          view.cut();
          orphaned();
        };
        onMade({ holdfast: this, kill });
      }
    };
  }

  /** Returns the shared store as an instance sees it: the instance opens, closes and loses it by itself. */
  #view(pollMs: number): { readonly store: Store; cut(): void } {
    const target: Store = this.#store;
    let isCut = false;
    const planned: Planned = { nextAt: null };
    const own: Readonly<Record<string, (params: never) => unknown>> = {
      open: () => this.#opened,
      close: () => Promise.resolve(),
      "instances.announce": (params: InstanceAnnouncement) =>
        target.instances.announce({ ...params, pollMs }),
      "work.poll": async (params: PollParams) => {
        planned.nextAt = null;
        return this.#wakeful(await target.work.poll(params), { pollMs, planned });
      },
      "schedules.write": (params: Parameters<Store["schedules"]["write"]>[0]) => {
        for (const { progress } of params.changes)
          planned.nextAt = Math.min(planned.nextAt ?? Infinity, progress.nextAt ?? Infinity);
        return target.schedules.write(params);
      },
    };
    const store = wrapStore(target, (verb, call) => {
      const replaced = own[verb];
      return (...args: unknown[]) => {
        if (isCut) return new Promise(() => undefined);
        return replaced ? replaced(args[0] as never) : call(...args);
      };
    });
    const cut = () => {
      isCut = true;
    };
    return { store, cut };
  }

  /**
   * Skips the polls that cannot find anything, which are most polls of a year. The next poll comes at
   * once if runs were due, because there may be more; after `pollMs` while anything runs or waits for
   * another run; otherwise when a tick or a run becomes due, including those that the pass of this poll plans.
   */
  async #wakeful(
    answer: PollResult,
    { pollMs, planned }: { readonly pollMs: number; readonly planned: Planned },
  ): Promise<PollResult> {
    const { now, nextWakeAt, hasDueSchedule } = answer;
    const isActive =
      answer.hasWakes ||
      answer.hasDue ||
      answer.hasReady ||
      answer.hasLimited ||
      answer.hasSuspect ||
      answer.hasExpired;
    const isBusy = answer.hasGated || (await this.#isBusy());
    const knownAt = Math.min(
      nextWakeAt ?? Infinity,
      now + (isActive ? 1 : isBusy ? pollMs : Infinity),
    );
    // A getter, because the loop reads it after the pass has written its changes.
    return Object.defineProperty({ ...answer }, "nextWakeAt", {
      get: () => {
        const { nextAt } = planned;
        const isUnclear = hasDueSchedule && nextAt === null;
        const wakeAt = Math.min(knownAt, isUnclear ? now + pollMs : (nextAt ?? Infinity));
        return wakeAt === Infinity ? null : wakeAt;
      },
    });
  }

  /** Whether a handler works, or worked when its instance was killed. */
  async #isBusy(): Promise<boolean> {
    if (this.#world.handlers.isAnyAtWork) return true;
    if (!this.#hasOrphans) return false;
    this.#hasOrphans = (await this.#store.runs.list({ status: "running", limit: 1 })).length > 0;
    return this.#hasOrphans;
  }
}

/** Returns the real network, but stops virtual time during a request: a service on this machine takes no time. */
function heldNetwork(clock: VirtualClock): Network {
  const held = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const release = clock.hold(() => what);
    try {
      return await work();
    } finally {
      release();
    }
  };
  return {
    resolve: (hostname) => held(`the lookup of ${hostname}`, () => systemNetwork.resolve(hostname)),
    send: (request) =>
      held(`a request to ${request.address}:${request.port}`, () => systemNetwork.send(request)),
  };
}
