// Lists the cases that every lock provider must pass, for any test framework: each case has a name and a function that
// rejects if the provider is wrong.

import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { LockProvider } from "../locks/rules/lock.js";
import { type LockAnswer, type LockRequest, WAITER_VOID_MS } from "../locks/rules/lock.js";
import { systemClock } from "../shared/adapters/clock.js";
import { delay } from "../shared/ports.js";

export type LockProviderCase = { readonly name: string; run(): Promise<void> };

export type LockProviderCasesParams = {
  /** A provider without any locks; called once for each case. */
  provider(): Promise<LockProvider>;
  /** Another connection to what the last provider keeps its locks in. @default that provider itself */
  another?(): Promise<LockProvider>;
  /** Lets time pass for the provider. @default waits */
  pass?(ms: number): Promise<void>;
  /** How much later than promised a lease may end, in milliseconds below 2,000: etcd counts whole seconds. @default 0 */
  readonly lateMs?: number;
};

const LEASE_MS = 1_000;
const PAST_LEASE_MS = LEASE_MS + 50;

type Granted = LockAnswer & { readonly isGranted: true };
type Case = (scene: Scene) => Promise<void>;

/** Returns the cases. A provider is correct when all of them pass. */
export function lockProviderCases(params: LockProviderCasesParams): readonly LockProviderCase[] {
  const { pass = (ms: number) => delay(systemClock, ms), lateMs = 0 } = params;
  return Object.entries(CASES).map(([name, play]) => ({
    name,
    async run() {
      const provider = await params.provider();
      const other = params.another ? await params.another() : provider;
      await play(new Scene(provider, other, { pass, lateMs }));
    },
  }));
}

class Scene {
  #tokens = 0;

  constructor(
    readonly provider: LockProvider,
    /** The same locks, seen through another connection. */
    readonly other: LockProvider,
    readonly time: { readonly pass: (ms: number) => Promise<void>; readonly lateMs: number },
  ) {}

  /** Lets time pass; a lease that is longer still stands. */
  pass(ms: number): Promise<void> {
    return this.time.pass(ms);
  }

  /** Lets time pass until a lease of this length has ended. */
  passEnd(ms: number): Promise<void> {
    return this.time.pass(ms + this.time.lateMs);
  }

  /** Tokens of different calls; providers may store them as UUIDs. */
  token(): string {
    this.#tokens += 1;
    return `00000000-0000-4000-8000-${String(this.#tokens).padStart(12, "0")}`;
  }

  request(changes: Partial<LockRequest> = {}): LockRequest {
    return {
      name: "import",
      token: this.token(),
      holder: "host:1:a",
      leaseMs: LEASE_MS,
      waiting: null,
      ...changes,
    };
  }

  ask(changes: Partial<LockRequest> = {}, provider = this.provider): Promise<LockAnswer> {
    return provider.acquire(this.request(changes));
  }

  async grant(changes: Partial<LockRequest> = {}): Promise<Granted> {
    const answer = await this.ask(changes);
    if (!answer.isGranted) throw new Error(`The lock was refused; ${answer.holder} has it.`);
    return answer;
  }

  async refused(changes: Partial<LockRequest> = {}): Promise<LockAnswer & { isGranted: false }> {
    const answer = await this.ask(changes);
    if (answer.isGranted) throw new Error("The lock was granted.");
    return answer;
  }
}

const CASES: Readonly<Record<string, Case>> = {
  "a free lock is granted, with a fence and the lease that was asked for": async (scene) => {
    const { fence, leaseMs, takenFrom } = await scene.grant();
    ok(Number.isSafeInteger(fence) && fence > 0, `${fence} is no fence`);
    strictEqual(leaseMs, LEASE_MS);
    strictEqual(takenFrom, null);
  },

  "a grant keeps the execution that it was asked for, while it is held and afterwards": async (
    scene,
  ) => {
    const { fence } = await scene.grant({ execution: "run-1-2" });
    strictEqual((await scene.provider.list({ limit: 10 }))[0]?.execution, "run-1-2");
    await scene.provider.release({ name: "import", fence });
    const other = await scene.grant();
    const held = await scene.provider.list({ limit: 10 });
    strictEqual(held[0]?.execution ?? null, null);
    if (!scene.provider.capabilities.history) return;
    const grants = await scene.provider.history({ limit: 10 });
    strictEqual(grants.find((grant) => grant.fence === fence)?.execution, "run-1-2");
    strictEqual(grants.find((grant) => grant.fence === other.fence)?.execution ?? null, null);
  },

  "a held lock is refused, with its holder and the end of its lease": async (scene) => {
    await scene.grant({ holder: "host:1:a" });
    const { holder, until } = await scene.refused({ holder: "host:2:b" });
    strictEqual(holder, "host:1:a");
    ok(until !== null && until > 0);
  },

  "the same holder does not get it twice": async (scene) => {
    await scene.grant();
    await scene.refused();
  },

  "locks of different names do not know each other": async (scene) => {
    await scene.grant({ name: "import" });
    await scene.grant({ name: "Import" });
    await scene.grant({ name: "export · 'é' \\ %_" });
  },

  "another connection sees the same locks": async (scene) => {
    const { fence } = await scene.grant();
    const answer = await scene.ask({}, scene.other);
    strictEqual(answer.isGranted, false);
    strictEqual(await scene.other.extend({ name: "import", fence, leaseMs: LEASE_MS }), true);
    strictEqual(await scene.other.release({ name: "import", fence }), true);
    strictEqual((await scene.ask()).isGranted, true);
  },

  "fences of one name grow with every grant, released, expired or revoked (S2)": async (scene) => {
    const fences: number[] = [];
    for (const end of ["release", "expire", "revoke", "release"]) {
      const { fence } = await scene.grant();
      fences.push(fence);
      if (end === "release") await scene.provider.release({ name: "import", fence });
      if (end === "expire") await scene.passEnd(PAST_LEASE_MS);
      if (end === "revoke") await scene.provider.revoke({ name: "import", note: null });
    }
    const sorted = [...new Set(fences)].sort((one, other) => one - other);
    deepStrictEqual(fences, sorted);
  },

  "of many calls at the same time one gets it (S1)": async (scene) => {
    const asks = Array.from({ length: 20 }, (_, at) =>
      scene.ask({}, at % 2 === 0 ? scene.provider : scene.other),
    );
    const answers = await Promise.all(asks);
    strictEqual(answers.filter(({ isGranted }) => isGranted).length, 1);
  },

  "a repeat with the same token is answered with the same grant": async (scene) => {
    const request = scene.request();
    const first = await scene.provider.acquire(request);
    const again = await scene.other.acquire(request);
    ok(first.isGranted && again.isGranted);
    strictEqual(again.fence, first.fence);
    ok(again.leaseMs <= LEASE_MS);
  },

  "a lease that ran out is taken over, and the answer names whose it was": async (scene) => {
    const first = await scene.grant({ holder: "host:1:a" });
    await scene.passEnd(PAST_LEASE_MS);
    const second = await scene.grant({ holder: "host:2:b" });
    strictEqual(second.takenFrom, "host:1:a");
    ok(second.fence > first.fence);
  },

  "an extended lease begins anew": async (scene) => {
    const { fence } = await scene.grant();
    for (let times = 0; times < 3; times += 1) {
      await scene.pass(LEASE_MS * 0.6);
      strictEqual(await scene.provider.extend({ name: "import", fence, leaseMs: LEASE_MS }), true);
    }
    await scene.refused();
  },

  "a lease that ran out may be extended while nobody took it": async (scene) => {
    const { fence } = await scene.grant();
    await scene.passEnd(PAST_LEASE_MS);
    strictEqual(await scene.provider.extend({ name: "import", fence, leaseMs: LEASE_MS }), true);
    await scene.refused();
  },

  "a stale extend changes nothing (S3)": async (scene) => {
    const stale = await scene.grant();
    await scene.passEnd(PAST_LEASE_MS);
    const current = await scene.grant({ holder: "host:2:b", leaseMs: 60_000 });
    const [before] = await scene.provider.list({ limit: 10 });
    const answer = await scene.provider.extend({ name: "import", fence: stale.fence, leaseMs: 9 });
    strictEqual(answer, false);
    deepStrictEqual(await scene.provider.list({ limit: 10 }), [before]);
    strictEqual(before?.fence, current.fence);
  },

  "a stale release changes nothing (S3)": async (scene) => {
    const stale = await scene.grant();
    await scene.passEnd(PAST_LEASE_MS);
    await scene.grant({ holder: "host:2:b", leaseMs: 60_000 });
    const before = await scene.provider.list({ limit: 10 });
    strictEqual(await scene.provider.release({ name: "import", fence: stale.fence }), false);
    deepStrictEqual(await scene.provider.list({ limit: 10 }), before);
    strictEqual((await scene.refused()).holder, "host:2:b");
  },

  "neither extends nor releases what never was, or what has another name": async (scene) => {
    const { fence } = await scene.grant();
    const wrong = [
      { name: "import", fence: fence + 1 },
      { name: "export", fence },
    ];
    for (const grant of wrong) {
      strictEqual(await scene.provider.extend({ ...grant, leaseMs: LEASE_MS }), false);
      strictEqual(await scene.provider.release(grant), false);
    }
    await scene.refused();
  },

  "a release that is repeated was a release, also when others have had the lock since": async (
    scene,
  ) => {
    const { fence } = await scene.grant();
    strictEqual(await scene.provider.release({ name: "import", fence }), true);
    strictEqual(await scene.other.release({ name: "import", fence }), true);
    const next = await scene.grant();
    strictEqual(await scene.provider.release({ name: "import", fence }), true);
    strictEqual((await scene.refused()).holder, "host:1:a");
    const [held] = await scene.provider.list({ limit: 1 });
    strictEqual(held?.fence, next.fence);
  },

  "a released grant cannot be extended": async (scene) => {
    const { fence } = await scene.grant();
    await scene.provider.release({ name: "import", fence });
    strictEqual(await scene.provider.extend({ name: "import", fence, leaseMs: LEASE_MS }), false);
    await scene.grant();
  },

  "what an operator took is lost to its holder": async (scene) => {
    const { fence } = await scene.grant({ holder: "host:1:a" });
    const taken = await scene.provider.revoke({ name: "import", note: "stuck" });
    deepStrictEqual(taken, { name: "import", fence, holder: "host:1:a" });
    strictEqual(await scene.provider.revoke({ name: "import", note: null }), null);
    strictEqual(await scene.provider.extend({ name: "import", fence, leaseMs: LEASE_MS }), false);
    strictEqual(await scene.provider.release({ name: "import", fence }), false);
    await scene.grant();
  },

  "held locks are listed by name, page by page, expired ones left out": async (scene) => {
    await scene.grant({ name: "c" });
    await scene.passEnd(PAST_LEASE_MS);
    const granted = await scene.grant({ name: "b", holder: "host:1:a" });
    await scene.grant({ name: "a" });
    await scene.grant({ name: "d" });
    const names = async (after?: string) =>
      (await scene.provider.list({ limit: 2, ...(after ? { after } : {}) })).map(
        ({ name }) => name,
      );
    deepStrictEqual(await names(), ["a", "b"]);
    deepStrictEqual(await names("b"), ["d"]);
    const [found, ...more] = await scene.provider.list({ name: "b", limit: 5 });
    deepStrictEqual(more, []);
    strictEqual(found?.fence, granted.fence);
    strictEqual(found?.holder, "host:1:a");
    strictEqual(found.until - found.acquiredAt, LEASE_MS);
    strictEqual(found.renewedAt, found.acquiredAt);
    strictEqual(found.waiting, 0);
  },

  "history tells how every grant ended, newest first": async (scene) => {
    if (!scene.provider.capabilities.history) return;
    const released = await scene.grant();
    await scene.provider.release({ name: "import", fence: released.fence });
    const expired = await scene.grant({ holder: "host:2:b" });
    await scene.passEnd(PAST_LEASE_MS);
    const revoked = await scene.grant();
    await scene.provider.revoke({ name: "import", note: "stuck since the deploy" });
    const held = await scene.grant();
    await scene.grant({ name: "export" });
    const found = await scene.provider.history({ name: "import", limit: 10 });
    deepStrictEqual(
      found.map(({ fence, state, holder, note }) => ({ fence, state, holder, note })),
      [
        { fence: held.fence, state: "acquired", holder: "host:1:a", note: null },
        {
          fence: revoked.fence,
          state: "revoked",
          holder: "host:1:a",
          note: "stuck since the deploy",
        },
        { fence: expired.fence, state: "expired", holder: "host:2:b", note: null },
        { fence: released.fence, state: "released", holder: "host:1:a", note: null },
      ],
    );
    deepStrictEqual(
      found.map(({ endedAt, acquiredAt, until }) =>
        endedAt === null ? "held" : endedAt >= acquiredAt && endedAt <= until,
      ),
      ["held", true, true, true],
    );
    const page = await scene.provider.history({ limit: 2, before: held.fence });
    deepStrictEqual(
      page.map(({ fence }) => fence),
      [revoked.fence, expired.fence],
    );
  },

  "statistics count grants by state, and what has run out as expired before anybody tidies": async (
    scene,
  ) => {
    const kept = scene.provider.capabilities.history;
    const none = await scene.provider.stats();
    deepStrictEqual(none, { acquired: 0, released: 0, expired: 0, revoked: 0, waiting: 0 });
    const { fence } = await scene.grant();
    await scene.provider.release({ name: "import", fence });
    await scene.grant();
    await scene.provider.revoke({ name: "import", note: null });
    await scene.grant({ name: "late" });
    await scene.passEnd(PAST_LEASE_MS);
    await scene.grant({ leaseMs: 60_000 });
    const { acquired, released, expired, revoked } = await scene.provider.stats();
    strictEqual(acquired, 1);
    if (kept)
      deepStrictEqual({ released, expired, revoked }, { released: 1, expired: 1, revoked: 1 });
    await scene.provider.tidy({ keepMs: 60_000, limit: 100 });
    if (kept) strictEqual((await scene.provider.stats()).expired, 1);
  },

  "tidying ends what has run out, once, and its holder has lost it": async (scene) => {
    const { fence } = await scene.grant({ holder: "host:1:a" });
    await scene.grant({ name: "fresh", leaseMs: 60_000 });
    await scene.passEnd(PAST_LEASE_MS);
    const { expired, held } = await scene.provider.tidy({ keepMs: 60_000, limit: 100 });
    strictEqual(held, 1);
    deepStrictEqual(expired, [{ name: "import", fence, holder: "host:1:a" }]);
    deepStrictEqual((await scene.provider.tidy({ keepMs: 60_000, limit: 100 })).expired, []);
    strictEqual(await scene.provider.extend({ name: "import", fence, leaseMs: LEASE_MS }), false);
    strictEqual(await scene.provider.release({ name: "import", fence }), false);
    const next = await scene.grant();
    ok(next.fence > fence);
    strictEqual(next.takenFrom, null);
  },

  "tidying removes history that is past its time, a bounded amount at once": async (scene) => {
    if (!scene.provider.capabilities.history) return;
    for (let times = 0; times < 3; times += 1) {
      const { fence } = await scene.grant();
      await scene.provider.release({ name: "import", fence });
    }
    await scene.passEnd(PAST_LEASE_MS);
    const held = await scene.grant();
    const count = async () => (await scene.provider.history({ limit: 10 })).length;
    strictEqual((await scene.provider.tidy({ keepMs: 60_000, limit: 2 })).removed, 0);
    strictEqual((await scene.provider.tidy({ keepMs: 500, limit: 2 })).removed, 2);
    strictEqual(await count(), 2);
    strictEqual((await scene.provider.tidy({ keepMs: 500, limit: 2 })).removed, 1);
    strictEqual((await scene.provider.stats()).released, 0);
    const next = await scene.provider.release({ name: "import", fence: held.fence });
    strictEqual(next, true);
    ok((await scene.grant()).fence > held.fence);
  },

  "a free lock goes to the waiter that came first, and a call that does not wait does not overtake":
    async (scene) => {
      if (!scene.provider.capabilities.queue) return;
      const { fence } = await scene.grant();
      const first = scene.request({ waiting: { priority: 0 }, holder: "host:1:first" });
      const second = scene.request({ waiting: { priority: 0 }, holder: "host:2:second" });
      for (const waiter of [first, second])
        strictEqual((await scene.provider.acquire(waiter)).isGranted, false);
      strictEqual((await scene.provider.list({ limit: 1 }))[0]?.waiting, 2);
      strictEqual((await scene.provider.stats()).waiting, 2);
      await scene.provider.release({ name: "import", fence });
      deepStrictEqual(await scene.refused(), { isGranted: false, holder: null, until: null });
      strictEqual((await scene.provider.acquire(second)).isGranted, false);
      const served = await scene.other.acquire(first);
      ok(served.isGranted);
      await scene.provider.release({ name: "import", fence: served.fence });
      strictEqual((await scene.provider.acquire(second)).isGranted, true);
      strictEqual((await scene.provider.list({ limit: 1 }))[0]?.waiting, 0);
    },

  "a waiter of larger priority goes before those who came earlier": async (scene) => {
    if (!scene.provider.capabilities.queue) return;
    const { fence } = await scene.grant();
    const early = scene.request({ waiting: { priority: 0 } });
    const idle = scene.request({ waiting: { priority: -100 } });
    const urgent = scene.request({ waiting: { priority: 100 } });
    for (const waiter of [idle, early, urgent]) await scene.provider.acquire(waiter);
    await scene.provider.release({ name: "import", fence });
    strictEqual((await scene.provider.acquire(early)).isGranted, false);
    const served = await scene.provider.acquire(urgent);
    ok(served.isGranted);
    await scene.provider.release({ name: "import", fence: served.fence });
    strictEqual((await scene.provider.acquire(idle)).isGranted, false);
    strictEqual((await scene.provider.acquire(early)).isGranted, true);
  },

  "a waiter that fell silent for 3 s keeps nobody waiting, one that asks keeps its place": async (
    scene,
  ) => {
    if (!scene.provider.capabilities.queue) return;
    const { fence } = await scene.grant({ leaseMs: 60_000 });
    const silent = scene.request({ waiting: { priority: 0 } });
    const patient = scene.request({ waiting: { priority: 0 } });
    await scene.provider.acquire(silent);
    await scene.provider.acquire(patient);
    await scene.pass(WAITER_VOID_MS - 500);
    await scene.provider.acquire(patient);
    await scene.provider.release({ name: "import", fence });
    strictEqual((await scene.provider.acquire(patient)).isGranted, false);
    await scene.passEnd(550);
    await scene.refused();
    strictEqual((await scene.provider.acquire(patient)).isGranted, true);
  },

  "a waiter that gives up keeps nobody waiting": async (scene) => {
    if (!scene.provider.capabilities.queue) return;
    const { fence } = await scene.grant();
    const waiter = scene.request({ waiting: { priority: 0 } });
    await scene.provider.acquire(waiter);
    await scene.provider.release({ name: "import", fence });
    await scene.refused();
    await scene.provider.leaveQueue({ name: "import", token: waiter.token });
    await scene.grant();
  },

  "a waiter takes over a lease that ran out": async (scene) => {
    await scene.grant();
    const waiter = scene.request({ waiting: { priority: 0 } });
    strictEqual((await scene.provider.acquire(waiter)).isGranted, false);
    await scene.passEnd(PAST_LEASE_MS);
    const answer = await scene.provider.acquire(waiter);
    ok(answer.isGranted);
    strictEqual(answer.takenFrom, "host:1:a");
  },
};
