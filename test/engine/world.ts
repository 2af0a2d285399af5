// Provides the setting of an engine test: real instances on a real database, in the time of the test. Every statement
// of an instance is counted and can be made to fail; every log line is kept.

import { expect, type TestAPI } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import type { HoldfastOptions } from "../../src/instance/config.js";
import type { Sends } from "../../src/remote/dispatching.js";
import type { RunId, RunStatus } from "../../src/runs/rules/run.js";
import type { Run } from "../../src/runs/view.js";
import type { Network } from "../../src/shared/ports.js";
import type { RunRecord } from "../../src/store/runs/runs.js";
import type { Store } from "../../src/store/store.js";
import type { EventName, Events, Logger } from "../../src/telemetry/log.js";
import {
  InstanceClock,
  SeededRandom,
  seededIds,
  VirtualClock,
} from "../../src/testing/virtual-clock.js";
import { faultyStore, StoreFaults, type Verb } from "../support/faulty-store.js";

/** A fresh database; every store on it takes its time from `now`. */
export type EnginePlace = {
  newStore(params: { readonly clock: VirtualClock; readonly now: () => number }): Store;
  /** A statement past every store; tables are written `{schedule}`. */
  execute(sql: string): Promise<void>;
  rows(sql: string): Promise<readonly Record<string, unknown>[]>;
  /** The full name of a table. */
  table(plain: string): string;
  /** A transaction of somebody else, at the strictest isolation. */
  transaction(): Promise<ForeignTransaction>;
  clear(): Promise<void>;
};

export type ForeignTransaction = {
  readonly tx: object;
  finish(how: "commit" | "rollback"): Promise<void>;
};

export type WorldTest = TestAPI<{ world: World }>;

/** One instance with what surrounds it. */
export type Member = {
  readonly holdfast: Holdfast;
  readonly faults: StoreFaults;
  /** Its own clock: pausing it stops this instance alone, as SIGSTOP would. */
  readonly clock: InstanceClock;
  /** Its log lines, in order. */
  readonly said: readonly Said[];
};

type Said = { readonly [Name in EventName]: { readonly event: Name } & Events[Name] }[EventName];

/** Notifications of other processes arrive by the instance's own clock: an instance whose clock stands still gets none. */
function heardBy(clock: InstanceClock, store: Store): Store {
  const onWake = store.onWake.bind(store);
  store.onWake = (listener) => onWake((hint) => clock.soon(() => listener(hint)));
  return store;
}

const TERMINAL: readonly RunStatus[] = ["completed", "failed", "cancelled"];

export class World {
  readonly clock = new VirtualClock();
  readonly #place: EnginePlace;
  readonly #members: Member[] = [];
  readonly #random = new SeededRandom(7);
  readonly #ids = seededIds(this.clock, this.#random);
  #observer: Store | undefined;
  /** How far the database's clock is ahead of the machines'. */
  databaseAheadMs = 0;

  constructor(place: EnginePlace) {
    this.#place = place;
  }

  /** Makes an instance; nothing is started. Time goes on while statements of `free` are under way. */
  member(
    options: HoldfastOptions = {},
    {
      skewMs = 0,
      free = [],
      sends,
      network,
      program,
    }: {
      readonly skewMs?: number;
      readonly free?: readonly Verb[];
      readonly sends?: Sends;
      readonly network?: Network;
      readonly program?: string;
    } = {},
  ): Member {
    const clock = new SkewedClock(this.clock, skewMs);
    const faults = new StoreFaults(() => this.clock.wallMs());
    const said: Said[] = [];
    const hear = (fields: object) => void said.push(fields as Said);
    const logger: Logger = { debug: hear, info: hear, warn: hear, error: hear };
    const holdfast = new Holdfast(
      { database: "sqlite::memory:", logger, ...options },
      {
        ports: { clock, random: this.#random, ids: this.#ids },
        store: () =>
          faultyStore({
            store: heardBy(clock, this.#newStore()),
            faults,
            track: (statement, verb) =>
              (free as readonly string[]).includes(verb) ? statement : this.clock.io(statement),
          }),
        ...(sends ? { sends } : {}),
        ...(network ? { network } : {}),
        ...(program === undefined ? {} : { program }),
      },
    );
    const member = { holdfast, faults, clock, said };
    this.#members.push(member);
    return member;
  }

  /** Looks at the database without any instance. */
  async store(): Promise<Store> {
    if (!this.#observer) {
      this.#observer = this.#newStore();
      await this.#observer.open();
    }
    return this.#observer;
  }

  /** The database's now. */
  now(): number {
    return this.clock.wallMs() + this.databaseAheadMs;
  }

  #newStore(): Store {
    return this.#place.newStore({ clock: this.clock, now: () => this.now() });
  }

  /** Changes the database behind the back of everybody. */
  execute(sql: string): Promise<void> {
    return this.#place.execute(sql);
  }

  rows(sql: string): Promise<readonly Record<string, unknown>[]> {
    return this.#place.rows(sql);
  }

  transaction(): Promise<ForeignTransaction> {
    return this.#place.transaction();
  }

  table(plain: string): string {
    return this.#place.table(plain);
  }

  async record(id: RunId): Promise<RunRecord> {
    const record = await (await this.store()).runs.get(id);
    if (!record) throw new Error(`There is no run ${id}.`);
    return record;
  }

  async status(id: RunId): Promise<RunStatus> {
    return (await this.record(id)).status;
  }

  /** Moves time until the run has ended. */
  async ended(id: RunId, options: { readonly withinMs?: number } = {}): Promise<RunRecord> {
    return this.reached(id, (run) => TERMINAL.includes(run.status), options);
  }

  /** Moves time until the run looks like that. */
  async reached(
    id: RunId,
    isReached: (run: RunRecord) => boolean,
    { withinMs = 600_000 }: { readonly withinMs?: number } = {},
  ): Promise<RunRecord> {
    const deadline = this.clock.wallMs() + withinMs;
    await this.clock.rest();
    for (;;) {
      const run = await this.record(id);
      if (isReached(run)) return run;
      if (!(await this.clock.step(deadline))) {
        throw new Error(
          `Run ${id} is ${run.status} at attempt ${run.attempt} after ${withinMs} ms.`,
        );
      }
    }
  }

  /** Stops every instance that is still there and removes the database. */
  async end(): Promise<void> {
    for (const { clock, faults } of this.#members) {
      clock.resume();
      faults.comeUp();
      for (const verb of [
        "leases.renew",
        "claims.exchange",
        "leases.markStarted",
        "work.poll",
        "schedules.write",
      ] as const)
        faults.deliver(verb);
    }
    const stops = this.#members.map(({ holdfast }) => holdfast.stop({ grace: 0 }));
    await this.clock.until(Promise.all(stops));
    await this.#observer?.close();
    await this.#place.clear();
  }
}

/** The clock of a machine that is wrong about the time of day. */
class SkewedClock extends InstanceClock {
  readonly #skewMs: number;

  constructor(base: VirtualClock, skewMs: number) {
    super(base);
    this.#skewMs = skewMs;
  }

  override wallMs(): number {
    return super.wallMs() + this.#skewMs;
  }
}

export function heard<Name extends EventName>(
  member: Member,
  name: Name,
): ({ readonly event: Name } & Events[Name])[] {
  return member.said.filter((each) => each.event === name) as never;
}

/** A promise to be settled from outside: what a handler waits for. */
export class Door<T = void> {
  readonly opened: Promise<T>;
  open!: (value: T) => void;
  fail!: (error: unknown) => void;

  constructor() {
    this.opened = new Promise<T>((resolve, reject) => {
      this.open = resolve;
      this.fail = reject;
    });
    this.opened.catch(() => undefined);
  }
}

/** Resolves when the signal aborts, with its reason. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}

/** Rejects when the signal aborts, as a well-behaved handler does. */
export async function obedient(signal: AbortSignal): Promise<never> {
  throw await aborted(signal);
}

export function expectEnded(run: RunRecord | Run, status: RunStatus, attempt: number): void {
  expect({ status: run.status, attempt: run.attempt }).toEqual({ status, attempt });
}
