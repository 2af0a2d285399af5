// The instances of a test: `Holdfast` itself, on one database in memory that outlives each of them,
// with the test's clock, chance and ids. One can be cut off as a killed process would be.

import type { Ports } from "../core/ports.js";
import type { HoldfastOptions } from "../engine/config.js";
import { Holdfast } from "../engine/holdfast.js";
import type { JobOf } from "../engine/job.js";
import { SqliteStore } from "../store/sqlite-store.js";
import type { Store } from "../store/store.js";
import type { Logger } from "../telemetry/log.js";
import type { AnyHandler, KitHandlers } from "./kit-handlers.js";
import { InstanceClock, SeededChance, seededIds, type VirtualClock } from "./virtual-clock.js";

/** What a test keeps is kept, unless it asks for less. */
const KEEP = "3650d";
const MEMORY = "sqlite::memory:";

/** One instance and the way to end it without a goodbye. */
export type Member = { readonly holdfast: Holdfast; kill(): void };

/** Options of an instance, but for its database, which is the test's. */
export type TestHoldfastOptions = Omit<
  HoldfastOptions,
  "database" | "schema" | "migrate" | "synchronous"
>;

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
  readonly #chance: SeededChance;
  readonly #ports: Omit<Ports, "clock">;
  readonly #opened: Promise<void>;

  constructor(world: World) {
    this.#world = world;
    const { clock, seed } = world;
    this.#chance = new SeededChance(seed);
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

  /** Looks at the database; declares and executes nothing. */
  reader(): Holdfast {
    const { clock, logger } = this.#world;
    const ports = { clock, ...this.#ports };
    return new Holdfast({ database: MEMORY, logger }, { ports, store: () => this.#view().store });
  }

  /** A class whose instances live in this test; `onMade` hears of each. */
  holdfastClass(onMade: (member: Member) => void): new (options?: HoldfastOptions) => Holdfast {
    const { clock: base, handlers, logger, options: general } = this.#world;
    const ports = this.#ports;
    const newView = () => this.#view();
    return class TestHoldfast extends Holdfast {
      constructor(options: HoldfastOptions = {}) {
        const clock = new InstanceClock(base);
        const view = newView();
        // An application's own file or server is the one thing that a test must not touch.
        const { database: _, schema: __, ...own } = options;
        super(
          {
            poll: "1m",
            retention: KEEP,
            ledgerRetention: KEEP,
            logger,
            ...own,
            ...general,
            database: MEMORY,
          },
          { ports: { ...ports, clock }, store: () => view.store },
        );
        const declare = super.job.bind(this) as (name: string, options: object) => JobOf<never, never>;
        this.job = ((name: string, given: { readonly run?: AnyHandler }) =>
          declare(
            name,
            given?.run ? { ...given, run: handlers.around(name, given.run) } : given,
          )) as Holdfast["job"];
        const kill = () => {
          clock.pause();
          view.cut();
        };
        onMade({ holdfast: this, kill });
      }
    };
  }

  /** The one store as an instance sees it: its own to open and to close, and to lose. */
  #view(): { readonly store: Store; cut(): void } {
    const target = this.#store;
    const methods = new Map<PropertyKey, unknown>();
    let isCut = false;
    const own: Readonly<Record<string, unknown>> = {
      open: () => this.#opened,
      close: () => Promise.resolve(),
    };
    const wrap = (name: PropertyKey): unknown => {
      if (typeof name === "string" && name in own) return own[name];
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) =>
        isCut ? new Promise(() => undefined) : Reflect.apply(member, target, args);
    };
    const store = new Proxy(target as Store, {
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
}
