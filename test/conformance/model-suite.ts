// Random histories (S11, S16): under every order of calls, a store returns the same as the model, and every enqueued
// run is pending, running or terminal, once.

import fc from "fast-check";
import { expect } from "vitest";
import { RUN_STATUSES, type RunId } from "../../src/runs/rules/run.js";
import type { Grant, Settlement } from "../../src/store/claims.js";
import type { NewRun } from "../../src/store/enqueue.js";
import { Model } from "./model.js";
import {
  cancelled,
  completed,
  failed,
  handedBack,
  idsOf,
  POLICY,
  policyWith,
  postponed,
  retried,
  type Scene,
  type SceneTest,
} from "./scene.js";

const SEED = 20_260_115;
const POLICIES = [
  POLICY,
  policyWith({ attempts: 1, leaseMs: 5_000 }),
  policyWith({ attempts: 2, onLost: "fail", leaseMs: 10_000, timeoutMs: 4_000 }),
  policyWith({ attempts: 2, onLost: "fail", leaseMs: 2_000 }),
] as const;
const ENDS: readonly ((grant: Grant) => Settlement)[] = [
  (grant) => completed(grant),
  (grant) => failed(grant),
  (grant) => cancelled(grant),
  (grant) => retried(grant, 1_000),
  (grant) => retried(grant, 0),
  (grant) => postponed(grant, 3_000),
  (grant) => handedBack(grant),
  (grant) => handedBack(grant, false),
];

/** One move; numbers choose among what there is at that moment. */
type Move = readonly [verb: string, ...choices: number[]];

const nat = (max: number) => fc.integer({ min: 0, max });
const move = (weight: number, verb: string, ...choices: fc.Arbitrary<number>[]) => ({
  weight,
  arbitrary: fc.tuple(fc.constant(verb), ...choices) as unknown as fc.Arbitrary<Move>,
});
const MOVES = fc.array(
  fc.oneof(
    move(4, "enqueue", nat(4), nat(4), nat(2), nat(POLICIES.length - 1)),
    move(1, "enqueue again", nat(99)),
    move(5, "claim", nat(5)),
    move(2, "claim suspect", nat(3)),
    move(5, "settle", nat(99), nat(ENDS.length - 1)),
    move(2, "settle old", nat(99), nat(ENDS.length - 1)),
    move(3, "settle a lease", nat(99), nat(ENDS.length - 1)),
    move(2, "renew", nat(99)),
    move(2, "mark started", nat(99)),
    move(4, "advance", nat(4)),
    move(2, "promote"),
    move(4, "reclaim"),
    move(2, "cancel", nat(99)),
    move(1, "enforce cancels", nat(1)),
    move(2, "retry", nat(99)),
    move(1, "remove", nat(99)),
    move(2, "poll"),
  ),
  { minLength: 10, maxLength: 45, size: "max" },
);

export function modelSuite(
  test: SceneTest,
  { histories, seed = SEED }: { readonly histories: number; readonly seed?: number },
): void {
  test(`${histories} random histories end as the model says, and nothing is lost or doubled`, async ({
    scene,
  }) => {
    await fc.assert(
      fc.asyncProperty(MOVES, async (moves) => {
        const player = new Player(scene);
        try {
          for (const each of moves) await player.play(each);
          await player.compare();
        } finally {
          await player.tidyUp();
        }
      }),
      { seed, numRuns: histories, endOnFailure: false },
    );
  }, 120_000);
}

class Player {
  readonly #scene: Scene;
  readonly #model = new Model();
  readonly #given: NewRun[] = [];
  readonly #grants: Grant[] = [];
  readonly #leases: Grant[][] = [];

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  async play([verb, ...choices]: Move): Promise<void> {
    const [first = 0, second = 0, third = 0, fourth = 0] = choices;
    const { store, holder, now } = this.#scene;
    const model = this.#model;
    switch (verb) {
      case "enqueue": {
        const runs = Array.from({ length: first }, () =>
          this.#scene.run({
            priority: second - 2,
            delayMs: [0, 500, 5_000][third] as number,
            policy: POLICIES[fourth] as (typeof POLICIES)[number],
          }),
        );
        this.#given.push(...runs);
        return this.#enqueue(runs);
      }
      case "enqueue again": {
        const run = pick(this.#given, first);
        return run && model.runs.has(run.id) ? this.#enqueue([run]) : undefined;
      }
      case "claim":
        return this.#claim(first, false);
      case "claim suspect":
        return this.#claim(first, true);
      case "settle":
        return this.#settle(pick(model.held(), first), second);
      case "settle old":
        return this.#settle(pick(this.#grants, first), second);
      case "settle a lease":
        return this.#settleWhole(pick(this.#leases, first) ?? [], second);
      case "renew": {
        const grant = pick(this.#grants, first);
        if (!grant) return;
        const { held, unknown } = await store.leases.renew({ holder, fences: [grant.fence] });
        expect(unknown).toEqual([]);
        const ids = held.flatMap((renewal) => renewal.ids);
        expect([verb, ids.toSorted()]).toEqual([verb, model.renew(grant.fence, now).sort()]);
        return;
      }
      case "mark started": {
        const grant = pick(this.#grants, first);
        if (!grant) return;
        const marked = await store.leases.markStarted([grant]);
        expect([verb, marked.length]).toEqual([verb, model.markStarted(grant) ? 1 : 0]);
        return;
      }
      case "advance":
        return this.#scene.advance([1, 500, 1_500, 4_000, 31_000][first] as number);
      case "promote":
        expect([verb, await store.work.promote({ limit: 1_000 })]).toEqual([
          verb,
          model.promote(now),
        ]);
        return;
      case "reclaim": {
        const reclaimed = await store.leases.reclaim({ limit: 1_000, random: 0.5 });
        const ends = new Map(reclaimed.map(({ id, end, to }) => [id, `${end} ${to}`]));
        expect(ends).toEqual(model.reclaim(now));
        return;
      }
      case "cancel": {
        const id = pick(this.#given, first)?.id;
        if (id)
          expect([verb, await store.runs.cancel({ id, random: 0 })]).toEqual([
            verb,
            model.cancel(id, now),
          ]);
        return;
      }
      case "enforce cancels": {
        const graceMs = first * 1_000;
        const ended = idsOf(await store.leases.enforceCancels({ graceMs, random: 0 }));
        expect([verb, ended.toSorted()]).toEqual([verb, model.enforceCancels(graceMs, now).sort()]);
        return;
      }
      case "retry": {
        const id = pick(this.#given, first)?.id;
        if (id)
          expect([verb, await store.runs.retry({ id })]).toEqual([verb, model.retry(id, now)]);
        return;
      }
      case "remove": {
        const id = pick(this.#given, first)?.id;
        if (id) expect([verb, await store.runs.remove({ id })]).toEqual([verb, model.remove(id)]);
        return;
      }
      case "poll": {
        const answer = await this.#scene.poll();
        const cancelRequested = answer.cancelRequested.toSorted();
        expect({ ...answer, cancelRequested }).toEqual(model.poll(now));
        return;
      }
    }
  }

  async #enqueue(runs: readonly NewRun[]): Promise<void> {
    const answers = await this.#scene.enqueue(...runs);
    expect(answers).toEqual(runs.map(({ id }) => ({ id, deduplicated: false })));
    for (const run of runs) this.#model.enqueue(run, this.#scene.now);
  }

  async #claim(limit: number, wantsSuspect: boolean): Promise<void> {
    const expected = this.#model.claimable(limit, wantsSuspect);
    const claims = await this.#scene.claims({ limit, wantsSuspect });
    const ids = claims.flatMap(({ runs }) => idsOf(runs));
    expect(["claim", ids.toSorted()]).toEqual(["claim", expected.toSorted()]);
    expect(this.#model.claimed(claims, this.#scene.now)).toEqual([]);
    for (const { fence, runs } of claims) {
      const grants = runs.map(({ id }) => ({ id, fence }));
      this.#grants.push(...grants);
      this.#leases.push(grants);
    }
  }

  async #settle(grant: Grant | undefined, end: number): Promise<void> {
    if (!grant) return;
    const settlement = (ENDS[end] as (typeof ENDS)[number])(grant);
    const isStale = this.#model.settle(settlement, this.#scene.now);
    const { id, fence } = grant;
    expect(["settle", await this.#scene.settle(settlement)]).toEqual([
      "settle",
      isStale ? [{ id, fence }] : [],
    ]);
  }

  /** All runs of a claim as one, whatever has become of some of them meanwhile. */
  async #settleWhole(lease: readonly Grant[], end: number): Promise<void> {
    const settlements = lease.map((grant) => (ENDS[end] as (typeof ENDS)[number])(grant));
    const { now } = this.#scene;
    const stale = lease.filter((_, at) =>
      this.#model.settle(settlements[at] as (typeof settlements)[number], now),
    );
    const answer = await this.#scene.settleWhole(...settlements);
    const byId = (one: Grant, other: Grant) => one.id.localeCompare(other.id);
    expect(["settle a lease", answer.toSorted(byId)]).toEqual([
      "settle a lease",
      stale.toSorted(byId),
    ]);
  }

  /** Everything that was enqueued and not removed is in one state, with the history it should have. */
  async compare(): Promise<void> {
    const { store } = this.#scene;
    const listed: RunId[] = [];
    for (const status of RUN_STATUSES) {
      const rows = await store.runs.list({ status, limit: 1_000 });
      listed.push(...idsOf(rows));
      for (const { id, ...row } of rows) {
        const run = this.#model.runs.get(id);
        expect({ id, status, attempt: row.attempt, max: row.attemptsMax }).toEqual({
          id,
          status: this.#model.statusOf(id),
          attempt: run?.attempt,
          max: Number(run?.given.policy.retry.attempts) + Number(run?.extra),
        });
        if (run?.state === "waiting") expect(row.dueAt).toBe(run.at);
        const attempts = await store.runs.attempts(id);
        expect(attempts.map(({ fence, attempt, end }) => [fence, attempt, end])).toEqual(
          run?.history.map(({ fence, attempt, end }) => [fence, attempt, end]),
        );
      }
    }
    expect(listed.toSorted()).toEqual([...this.#model.runs.keys()].sort());
  }

  /** The next history begins with nothing. */
  async tidyUp(): Promise<void> {
    const { store } = this.#scene;
    const rows = await store.runs.list({ limit: 1_000 });
    await Promise.all(rows.map(({ id }) => store.runs.cancel({ id, random: 0 })));
    await store.leases.enforceCancels({ graceMs: 0, random: 0 });
    await Promise.all(rows.map(({ id }) => store.runs.remove({ id })));
    expect(await store.runs.list({ limit: 1 })).toEqual([]);
  }
}

function pick<T>(among: readonly T[], choice: number): T | undefined {
  return among[choice % Math.max(1, among.length)];
}
