// Where a conformance test happens: a fresh database, a clock that the test steps by hand, and short
// words for what a holder does. Everything goes through the store's verbs; nothing looks behind them.

import type { TestAPI } from "vitest";
import { UuidV7Source } from "../../src/core/id.js";
import type { Mode, Policy, RunId, RunStatus } from "../../src/core/run.js";
import type {
  Claim,
  EnqueueAnswer,
  ExchangeParams,
  Grant,
  NewRun,
  RunRecord,
  Settlement,
  Store,
} from "../../src/store/store.js";

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

export const LEASE_MS = 30_000;
export const TIMEOUT_MS = 7_200_000;
/** No jitter, so that every delay can be stated. */
export const POLICY: Policy = {
  leaseMs: LEASE_MS,
  timeoutMs: TIMEOUT_MS,
  retry: { attempts: 3, delayMs: 1_000, factor: 2, maxMs: 60_000, jitter: 0 },
  onLost: "retry",
};

export function policyWith(changes: {
  readonly leaseMs?: number;
  readonly timeoutMs?: number;
  readonly attempts?: number;
  readonly onLost?: Policy["onLost"];
}): Policy {
  const { attempts = POLICY.retry.attempts, ...rest } = changes;
  return { ...POLICY, ...rest, retry: { ...POLICY.retry, attempts } };
}

/** A claimed run, with what its claim says about it. */
export type Held = Grant & {
  readonly job: string;
  readonly mode: Mode;
  readonly attempt: number;
  readonly isSuspect: boolean;
  readonly claim: Claim;
};

type ClaimChanges = Partial<Omit<ExchangeParams, "settlements">> & { readonly store?: Store };

export class Scene {
  readonly place: Place;
  readonly #stores: Store[] = [];
  readonly #ids: UuidV7Source;
  #now = START_AT;
  #store: Store | undefined;
  #holder = 0;

  constructor(place: Place) {
    this.place = place;
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

  announce(instanceId: string, store = this.store): Promise<number> {
    return store.announce({ instanceId, app: null, release: null, jobs: [] });
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

  enqueue(...runs: NewRun[]): Promise<readonly EnqueueAnswer[]> {
    return this.store.enqueue({ runs, isAtomic: false, tellsOthers: false });
  }

  /** New runs, stored; answers their ids. */
  async enqueued(count: number, changes: Partial<NewRun> = {}): Promise<RunId[]> {
    const runs = Array.from({ length: count }, () => this.run(changes));
    await this.enqueue(...runs);
    return runs.map(({ id }) => id);
  }

  async claims(changes: ClaimChanges = {}): Promise<readonly Claim[]> {
    const { store = this.store, ...rest } = changes;
    const { claims } = await store.exchange({
      holder: this.holder,
      token: crypto.randomUUID(),
      settlements: [],
      limit: 10,
      wantsSuspect: false,
      jobs: ["study"],
      queues: null,
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
  async settle(...settlements: Settlement[]): Promise<readonly Grant[]> {
    const { claims, stale } = await this.store.exchange({
      holder: this.holder,
      token: crypto.randomUUID(),
      settlements,
      limit: 0,
      wantsSuspect: false,
      jobs: [],
      queues: null,
    });
    if (claims.length > 0) throw new Error("A claim of 0 returned something.");
    return stale;
  }

  /** Takes the lease of everything that is held, without anybody's doing. */
  async loseAll(leaseMs = LEASE_MS): Promise<void> {
    this.advance(leaseMs);
    await this.store.reclaim({ limit: 100, chance: 0 });
  }

  async record(id: RunId): Promise<RunRecord> {
    const record = await this.store.run(id);
    if (!record) throw new Error(`There is no run ${id}.`);
    return record;
  }

  async status(id: RunId): Promise<RunStatus> {
    return (await this.record(id)).status;
  }

  /** All that a store tells about a run: equal before and after means that nothing changed. */
  async portrait(id: RunId): Promise<unknown> {
    return [await this.store.run(id), await this.store.attempts(id)];
  }

  poll(changes: { readonly jobs?: readonly string[]; readonly queues?: readonly string[] } = {}) {
    return this.store.poll({ holder: this.holder, jobs: ["study"], queues: null, ...changes });
  }
}

export function heldBy(claims: readonly Claim[]): Held[] {
  return claims.flatMap((claim) =>
    claim.runs.map(({ id, mode }) => ({
      id,
      fence: claim.fence,
      job: claim.job,
      mode,
      attempt: claim.attempt,
      isSuspect: claim.isSuspect,
      claim,
    })),
  );
}

export function idsOf(grants: readonly { readonly id: RunId }[]): RunId[] {
  return grants.map(({ id }) => id);
}

type Ended = Grant & { readonly mode?: Mode };

const common = ({ id, fence, mode = "enqueued" }: Ended) => ({ id, fence, mode, ranMs: 5 });

export function completed(grant: Ended, result: string | null = '"done"'): Settlement {
  return { ...common(grant), to: "completed", result, error: null };
}

export function failed(grant: Ended, error = '{"code":"BROKEN"}'): Settlement {
  return { ...common(grant), to: "failed", result: null, error };
}

export function cancelled(grant: Ended): Settlement {
  return { ...common(grant), to: "cancelled", result: null, error: null };
}

export function retried(grant: Ended, delayMs = 1_000, error = '{"code":"AGAIN"}'): Settlement {
  return { ...common(grant), to: "pending", end: "failed", delayMs, isRefund: false, error };
}

export function timedOut(grant: Ended, delayMs = 1_000): Settlement {
  const error = '{"code":"TIMEOUT","message":"as its own instance saw it"}';
  return { ...common(grant), to: "pending", end: "timeout", delayMs, isRefund: false, error };
}

export function postponed(grant: Ended, delayMs = 1_000): Settlement {
  return {
    ...common(grant),
    to: "pending",
    end: "later",
    delayMs,
    isRefund: true,
    error: null,
  };
}

export function handedBack(grant: Ended, isRefund = true): Settlement {
  return {
    ...common(grant),
    to: "pending",
    end: "handed_back",
    delayMs: 0,
    isRefund,
    error: null,
  };
}
