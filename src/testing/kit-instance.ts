// The instances of a test: `Holdfast` itself, on one database in memory that outlives each of them,
// with the test's clock, chance and ids. One can be cut off as a killed process would be.

import { Holdfast } from "../holdfast.js";
import type { HoldfastOptions } from "../instance/config.js";
import type { JobOf } from "../runs/job.js";
import { systemNetwork } from "../shared/adapters/network.js";
import { durationMs } from "../shared/duration.js";
import type { Network, Ports } from "../shared/ports.js";
import type { SqliteHandle } from "../store/sqlite/connection.js";
import { SqliteStore } from "../store/sqlite/store.js";
import type { PollAnswer, Store } from "../store/store.js";
import type { Logger } from "../telemetry/log.js";
import type { AnyHandler, KitHandlers } from "./kit-handlers.js";
import { InstanceClock, SeededRandom, seededIds, type VirtualClock } from "./virtual-clock.js";

/** What a test keeps is kept, unless it asks for less. */
const KEEP = "3650d";
const POLL = "1s";
/** How often an instance polls that has nothing to poll for. */
const IDLE_POLL = "1h";
const MEMORY = "sqlite::memory:";

/** One instance and the way to end it without a goodbye. */
export type Member = { readonly holdfast: Holdfast; kill(): void };

/** Options of an instance, but for its database, which is the test's. */
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
  readonly #chance: SeededRandom;
  readonly #ports: Omit<Ports, "clock">;
  readonly #opened: Promise<void>;
  /** Runs of killed instances may still be leased to them. */
  #hasOrphans = false;

  constructor(world: World) {
    this.#world = world;
    const { clock, seed } = world;
    this.#chance = new SeededRandom(seed);
    this.#ports = { chance: this.#chance, ids: seededIds(clock, this.#chance) };
    this.#store = new SqliteStore({
      source: { file: ":memory:" },
      clock,
      chance: this.#chance,
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

  /** Looks at the database; declares and executes nothing. */
  reader(): Holdfast {
    const { clock, logger } = this.#world;
    const ports = { clock, ...this.#ports };
    return new Holdfast({ database: MEMORY, logger }, { ports, store: () => this.#view(0).store });
  }

  /** A class whose instances live in this test; `onMade` hears of each. */
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
        // An application's own file or server is the one thing that a test must not touch.
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

  /** The one store as an instance sees it: its own to open and to close, and to lose. */
  #view(pollMs: number): { readonly store: Store; cut(): void } {
    const target: Store = this.#store;
    const methods = new Map<PropertyKey, unknown>();
    let isCut = false;
    const planned: Planned = { nextAt: null };
    const own: Partial<Store> = {
      open: () => this.#opened,
      close: () => Promise.resolve(),
      announce: (params) => target.announce({ ...params, pollMs }),
      poll: async (params) => {
        planned.nextAt = null;
        return this.#wakeful(await target.poll(params), { pollMs, planned });
      },
      writeSchedules: (params) => {
        for (const { progress } of params.changes)
          planned.nextAt = Math.min(planned.nextAt ?? Infinity, progress.nextAt ?? Infinity);
        return target.writeSchedules(params);
      },
    };
    const wrap = (name: PropertyKey): unknown => {
      const member: unknown = Reflect.get(name in own ? own : target, name);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => {
        if (isCut) return new Promise(() => undefined);
        return Reflect.apply(member, target, args);
      };
    };
    const store = new Proxy(target, {
      get(_, name) {
        if (!methods.has(name)) methods.set(name, wrap(name));
        return methods.get(name);
      },
    });
    const cut = () => {
      isCut = true;
    };
    return { store, cut };
  }

  /**
   * Leaves out the polls that cannot find anything, which are most of a year: the next one comes at
   * once where runs were due, as more may be; after `pollMs` while anything runs or waits for
   * another; else when a tick or a run becomes due, those included that this poll's pass plans.
   */
  async #wakeful(
    answer: PollAnswer,
    { pollMs, planned }: { readonly pollMs: number; readonly planned: Planned },
  ): Promise<PollAnswer> {
    const { now, nextWakeAt, hasDueSchedule } = answer;
    const isActive =
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
    // Read after the pass, so that it knows what the pass has written.
    return Object.defineProperty({ ...answer }, "nextWakeAt", {
      get: () => {
        const { nextAt } = planned;
        const isUnclear = hasDueSchedule && nextAt === null;
        const wakeAt = Math.min(knownAt, isUnclear ? now + pollMs : (nextAt ?? Infinity));
        return wakeAt === Infinity ? null : wakeAt;
      },
    });
  }

  /** Whether a handler is at work, or was when its instance was killed. */
  async #isBusy(): Promise<boolean> {
    if (this.#world.handlers.isAnyAtWork) return true;
    if (!this.#hasOrphans) return false;
    this.#hasOrphans = (await this.#store.runs({ status: "running", limit: 1 })).length > 0;
    return this.#hasOrphans;
  }
}

// The network of a test: the real one, with real servers. While a request is on its way time stands still,
// as it does while a handler works: a service on this machine takes no time.

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
