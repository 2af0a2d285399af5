// Provides the setting of a conformance test: a fresh database, a clock that the test steps by hand, and short names
// for the calls of a holder. Everything goes through the store's verbs; nothing reads the tables directly.

import type { TestAPI } from "vitest";
import type { Mode, RunId, RunStatus } from "../../src/runs/rules/run.js";
import { UuidV7Source } from "../../src/shared/id.js";
import type { Claim, ExchangeParams, Grant, Settlement } from "../../src/store/claims.js";
import type { EnqueueResult, NewRun } from "../../src/store/enqueue.js";
import type { InstanceAnnouncement } from "../../src/store/instances.js";
import type { RunRecord } from "../../src/store/runs/runs.js";
import type { Store } from "../../src/store/store.js";
import type { PollParams, PollResult } from "../../src/store/work.js";
import { LEASE_MS, POLICY } from "./policy.js";
import { SceneSchedules } from "./schedule-fixtures.js";

export {
  cancelled,
  completed,
  failed,
  handedBack,
  postponed,
  retried,
  timedOut,
} from "./endings.js";
export { LEASE_MS, POLICY, policyWith, TIMEOUT_MS } from "./policy.js";

/** A fresh database. */
export type Place = {
  /** Whether several stores can be opened on it. */
  readonly isShared: boolean;
  /** One more store on it, not opened yet. */
  newStore(params: {
    readonly now: () => number;
    readonly migrate?: "auto" | "check" | "off";
  }): Store;
  /** A second one, as fresh. */
  another(): Promise<Place>;
  /** Removes it, once its stores are closed. */
  clear(): Promise<void>;
};

export type MakePlace = () => Promise<Place>;
export type SceneTest = TestAPI<{ scene: Scene }>;

const START_AT = Date.UTC(2026, 0, 15, 12);

/** A claimed run, with what its claim says about it. */
export type Held = Grant & {
  readonly job: string;
  readonly mode: Mode;
  readonly schedule: number | null;
  readonly batch: number | null;
  readonly attempt: number;
  readonly isSuspect: boolean;
  readonly claim: Claim;
};

type ClaimChanges = Partial<Omit<ExchangeParams, "settlements">> & { readonly store?: Store };

export class Scene {
  readonly place: Place;
  readonly schedules: SceneSchedules;
  /** For what the end of a run draws. */
  random = 0;
  readonly #stores: Store[] = [];
  readonly #ids: UuidV7Source;
  #now = START_AT;
  #store: Store | undefined;
  #holder = 0;

  constructor(place: Place) {
    this.place = place;
    this.schedules = new SceneSchedules(this);
    this.#ids = new UuidV7Source(
      () => this.#now,
      (bytes) => crypto.getRandomValues(bytes),
    );
  }

  static async start(place: Place): Promise<Scene> {
    const scene = new Scene(place);
    scene.#store = await scene.open();
    scene.#holder = await scene.announce("first");
    return scene;
  }

  async end(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
    await this.place.clear();
  }

  get store(): Store {
    return this.#store as Store;
  }

  get holder(): number {
    return this.#holder;
  }

  get now(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  /** One more store on the same database. */
  async open(migrate: "auto" | "check" | "off" = "auto"): Promise<Store> {
    const store = this.place.newStore({ now: () => this.#now, migrate });
    this.#stores.push(store);
    await store.open();
    return store;
  }

  announce(
    instanceId: string,
    store = this.store,
    changes: Partial<InstanceAnnouncement> = {},
  ): Promise<number> {
    return store.instances.announce({
      instanceId,
      app: null,
      release: null,
      jobs: [],
      schedules: [],
      isScheduler: false,
      pollMs: 1_000,
      ...changes,
    });
  }

  id(): RunId {
    return this.#ids.next();
  }

  run(changes: Partial<NewRun> = {}): NewRun {
    return {
      id: this.id(),
      job: "study",
      queue: "default",
      policy: POLICY,
      input: '{"n":1}',
      mode: "enqueued",
      version: 1,
      priority: 0,
      dueAt: null,
      delayMs: 0,
      tags: [],
      key: null,
      ...changes,
    };
  }

  enqueue(...runs: NewRun[]): Promise<readonly EnqueueResult[]> {
    return this.store.enqueue.runs({ runs, isAtomic: false, wakesOthers: false });
  }

  /** New runs, stored; answers their ids. */
  async enqueued(count: number, changes: Partial<NewRun> = {}): Promise<RunId[]> {
    const runs = Array.from({ length: count }, () => this.run(changes));
    await this.enqueue(...runs);
    return runs.map(({ id }) => id);
  }

  async claims(changes: ClaimChanges = {}): Promise<readonly Claim[]> {
    const { store = this.store, ...rest } = changes;
    const { claims } = await store.claims.exchange({
      holder: this.holder,
      token: crypto.randomUUID(),
      settlements: [],
      limit: 10,
      wantsSuspect: false,
      jobs: ["study"],
      queues: null,
      random: 0,
      ...rest,
    });
    return claims;
  }

  async claim(changes: ClaimChanges = {}): Promise<Held[]> {
    return heldBy(await this.claims(changes));
  }

  /** The one run that can be claimed now. */
  async claimOne(changes: ClaimChanges = {}): Promise<Held> {
    const [held] = await this.claim({ limit: 1, ...changes });
    if (!held) throw new Error("Nothing was there to claim.");
    return held;
  }

  /** Settles; answers what was stale. */
  settle(...settlements: Settlement[]): Promise<readonly Grant[]> {
    return this.#settle({ settlements });
  }

  /** Settles all runs of one claim, in its order. */
  settleWhole(...settlements: Settlement[]): Promise<readonly Grant[]> {
    return this.#settle({ settlements, isWholeLease: true });
  }

  /** The same through another store. */
  settleIn(store: Store, ...settlements: Settlement[]): Promise<readonly Grant[]> {
    return this.#settle({ settlements }, store);
  }

  async #settle(
    params: Pick<ExchangeParams, "settlements" | "isWholeLease">,
    store = this.store,
  ): Promise<readonly Grant[]> {
    const { claims, stale } = await store.claims.exchange({
      ...params,
      holder: this.holder,
      token: crypto.randomUUID(),
      limit: 0,
      wantsSuspect: false,
      jobs: [],
      queues: null,
      random: this.random,
    });
    if (claims.length > 0) throw new Error("A claim of 0 returned something.");
    return stale;
  }

  /** Takes the lease of everything that is held, without anybody's doing. */
  async loseAll(leaseMs = LEASE_MS): Promise<void> {
    this.advance(leaseMs);
    await this.store.leases.reclaim({ limit: 100, random: this.random });
  }

  async record(id: RunId): Promise<RunRecord> {
    const record = await this.store.runs.get(id);
    if (!record) throw new Error(`There is no run ${id}.`);
    return record;
  }

  async status(id: RunId): Promise<RunStatus> {
    return (await this.record(id)).status;
  }

  /** All that a store tells about a run: equal before and after means that nothing changed. */
  async portrait(id: RunId): Promise<unknown> {
    return [await this.store.runs.get(id), await this.store.runs.attempts(id)];
  }

  poll(changes: Partial<PollParams> = {}, store = this.store): Promise<PollResult> {
    return store.work.poll({
      holder: this.holder,
      jobs: ["study"],
      queues: null,
      isScheduler: false,
      ...changes,
    });
  }
}

export function heldBy(claims: readonly Claim[]): Held[] {
  return claims.flatMap((claim) =>
    claim.runs.map(({ id, mode, schedule, batch }) => ({
      id,
      fence: claim.fence,
      job: claim.job,
      mode,
      schedule,
      batch,
      attempt: claim.attempt,
      isSuspect: claim.isSuspect,
      claim,
    })),
  );
}

export function idsOf(grants: readonly { readonly id: RunId }[]): RunId[] {
  return grants.map(({ id }) => id);
}
