// Limits, queues and keys as users see them, on instances that work together.

import { expect } from "vitest";
import type { Member, World, WorldTest } from "./world.js";

type Input = { readonly account: string };

/** Instances with one job under these options; what runs at once is counted for each account. */
async function limitedInstances(
  world: World,
  options: object,
  { count = 2, tookMs = 100 }: { readonly count?: number; readonly tookMs?: number } = {},
): Promise<{
  members: Member[];
  most: Map<string, number>;
  begun: { account: string; at: number }[];
}> {
  const most = new Map<string, number>();
  const now = new Map<string, number>();
  const begun: { account: string; at: number }[] = [];
  const members = Array.from({ length: count }, () => world.member());
  for (const member of members) {
    member.holdfast.job<Input>("study", {
      ...options,
      async run({ account }) {
        begun.push({ account, at: world.now() });
        now.set(account, (now.get(account) ?? 0) + 1);
        most.set(account, Math.max(most.get(account) ?? 0, now.get(account) ?? 0));
        await member.clock.sleep(tookMs);
        now.set(account, (now.get(account) ?? 0) - 1);
      },
    });
    await member.holdfast.start({ scheduler: false });
  }
  return { members, most, begun };
}

export function limitSuite(test: WorldTest): void {
  test("a limit holds over instances, and every run ends without waiting for polls", async ({
    world,
  }) => {
    const { members, most } = await limitedInstances(world, {
      concurrency: { limit: 2, key: "account" },
    });
    const [first] = members as [Member];
    const ids: string[] = [];
    for (const account of ["a", "b"])
      for (let at = 0; at < 10; at += 1)
        ids.push((await first.holdfast.enqueue("study", { account })).id);
    // Ten runs of a tenth of a second, two at once: half a second, and a little for the way.
    await world.clock.advance(900);
    for (const id of ids) expect((await first.holdfast.runs.get(id))?.status).toBe("completed");
    expect([...most.values()]).toEqual([2, 2]);
  });

  test("a rate holds over instances, and the next run begins when its window lets it", async ({
    world,
  }) => {
    const { members, begun } = await limitedInstances(
      world,
      { rate: { limit: 2, per: "10s" } },
      { tookMs: 1 },
    );
    const [first] = members as [Member];
    for (let at = 0; at < 6; at += 1) await first.holdfast.enqueue("study", { account: "a" });
    await world.clock.advance(30_000);
    expect(begun).toHaveLength(6);
    for (const [at, { at: beganAt }] of begun.entries()) {
      const earlier = begun[at - 2];
      if (earlier) expect(beganAt - earlier.at).toBeGreaterThanOrEqual(10_000);
      // Neither later than the window asks for, give or take what a statement takes.
      if (earlier) expect(beganAt - earlier.at).toBeLessThan(11_500);
    }
  });

  test("runs of a crashed instance are reclaimed, and no capacity is lost", async ({ world }) => {
    const { members, most } = await limitedInstances(world, {
      concurrency: { limit: 1, key: "account" },
      lease: "2s",
    });
    const [first, second] = members as [Member, Member];
    const { id } = await first.holdfast.enqueue("study", { account: "a" });
    await world.clock.advance(50);
    const holder = (await second.holdfast.runs.get(id))?.holder;
    const dead = members.find(({ holdfast }) => holdfast.instanceId === holder) as Member;
    const alive = members.find((member) => member !== dead) as Member;
    dead.clock.pause();
    const next = await alive.holdfast.enqueue("study", { account: "a" });
    await world.clock.advance(1_000);
    expect((await alive.holdfast.runs.get(next.id))?.waitingFor).toMatchObject({
      reason: "concurrency",
      key: "a",
      limit: 1,
      held: 1,
    });
    await world.clock.advance(15_000);
    for (const each of [id, next.id])
      expect((await alive.holdfast.runs.get(each))?.status).toBe("completed");
    expect(most.get("a")).toBeLessThanOrEqual(2);
  });

  test("a run of a schedule stands under the key of the schedule's input", async ({ world }) => {
    const { members } = await limitedInstances(
      world,
      { concurrency: { limit: 1, key: "account" } },
      { count: 1, tookMs: 60_000 },
    );
    const [{ holdfast }] = members as [Member];
    await holdfast.enqueue("study", { account: "a" });
    await world.clock.advance(100);
    await holdfast.schedules.upsert("nightly", {
      job: "study",
      cron: "0 0 1 1 *",
      input: { account: "a" },
    });
    const triggered = await holdfast.schedules.trigger("nightly");
    const runId = triggered.runId ?? "";
    await world.clock.advance(5_000);
    expect((await holdfast.runs.get(runId))?.waitingFor).toMatchObject({
      reason: "concurrency",
      key: "a",
    });
    await world.clock.advance(70_000);
    expect((await holdfast.runs.get(runId))?.status).toBe("running");
  });

  test("a paused queue is not claimed from, and goes on when it is resumed", async ({ world }) => {
    const { members } = await limitedInstances(world, { queue: "mail" }, { count: 1 });
    const [{ holdfast }] = members as [Member];
    await holdfast.queues.pause("mail", "the relay is down");
    const { id } = await holdfast.enqueue("study", { account: "a" });
    await world.clock.advance(5_000);
    const waiting = await holdfast.runs.get(id);
    expect(waiting?.status).toBe("pending");
    expect(waiting?.waitingFor).toMatchObject({
      reason: "paused_queue",
      note: "the relay is down",
    });
    expect(await holdfast.queues.list()).toMatchObject([
      { name: "mail", ready: 1, waiting: 0, running: 0, pauseNote: "the relay is down" },
    ]);
    expect((await holdfast.queues.resume("mail")).pausedAt).toBeNull();
    const unknown = { name: "male", ready: 0, waiting: 0, running: 0, pausedAt: null };
    expect(await holdfast.queues.resume("male")).toMatchObject(unknown);
    expect((await holdfast.queues.list()).map(({ name }) => name)).not.toContain("male");
    await world.clock.advance(500);
    expect((await holdfast.runs.get(id))?.status).toBe("completed");
  });

  test("a rate holds for begins, also where claims were read late because the loop was blocked", async ({
    world,
  }) => {
    const options = { rate: { limit: 10, per: "1s" } };
    const { members, begun } = await limitedInstances(world, options, {
      count: 1,
      tookMs: 1,
    });
    const [{ holdfast, faults }] = members as [Member];
    for (const blockedMs of [300, 450, 900, 1_000, 1_700]) {
      await world.clock.advance(5_000);
      faults.keepBack("claims.exchange");
      for (let at = 0; at < 40; at += 1) await holdfast.enqueue("study", { account: "a" });
      await world.clock.advance(blockedMs);
      faults.deliver("claims.exchange");
      await world.clock.advance(10_000);
    }
    expect(begun).toHaveLength(200);
    const within = (from: number) =>
      begun.filter(({ at }) => at >= from && at < from + 1_000).length;
    expect(Math.max(...begun.map(({ at }) => within(at)))).toBeLessThanOrEqual(10);
  });

  test("debounce: calls that postpone make one run, after the last of them", async ({ world }) => {
    const { members, begun } = await limitedInstances(world, {}, { count: 1 });
    const [{ holdfast }] = members as [Member];
    const options = { key: "index", delay: "5s", onDuplicate: "postpone" } as const;
    const { id } = await holdfast.enqueue("study", { account: "a" }, options);
    for (let call = 0; call < 5; call += 1) {
      await world.clock.advance(3_000);
      expect(await holdfast.enqueue("study", { account: "a" }, options)).toEqual({
        id,
        deduplicated: true,
      });
    }
    const lastAt = world.now();
    expect(begun).toEqual([]);
    await world.clock.advance(6_000);
    expect(begun).toHaveLength(1);
    expect(begun[0]?.at).toBeGreaterThanOrEqual(lastAt + 5_000);
  });

  test("debounce with maxWait: a steady stream of calls still makes a run each time maxWait has passed", async ({
    world,
  }) => {
    const { members, begun } = await limitedInstances(world, {}, { count: 1 });
    const [{ holdfast }] = members as [Member];
    const options = {
      key: "index",
      keyFor: "live",
      delay: "5s",
      maxWait: "1m",
      onDuplicate: "postpone",
    } as const;
    const firstAt = world.now();
    for (let call = 0; call < 13 * 60; call += 1) {
      await holdfast.enqueue("study", { account: "a" }, options);
      await world.clock.advance(1_000);
    }
    expect(begun.length).toBeGreaterThanOrEqual(12);
    expect(begun.length).toBeLessThanOrEqual(13);
    expect(begun[0]?.at).toBeGreaterThanOrEqual(firstAt + 60_000);
    expect(begun[0]?.at).toBeLessThanOrEqual(firstAt + 62_000);
  });

  test("throttle: within the time of a key there is one run", async ({ world }) => {
    const { members, begun } = await limitedInstances(world, {}, { count: 1 });
    const [{ holdfast }] = members as [Member];
    const options = { key: "digest", keyFor: "1m" } as const;
    for (let call = 0; call < 12; call += 1) {
      await holdfast.enqueue("study", { account: "a" }, options);
      await world.clock.advance(10_000);
    }
    expect(begun).toHaveLength(2);
  });

  test("wrong limits and key rules are refused by name, with a right value", async ({ world }) => {
    const { holdfast } = world.member();
    const refused = (options: object) => () => holdfast.job("wrong", options);
    expect(refused({ concurrency: { limit: 0 } })).toThrow(/concurrency\.limit: .*for example 3/);
    expect(refused({ concurrency: { limit: 1, key: "" } })).toThrow(
      /concurrency\.key: .*"account\.id"/,
    );
    expect(refused({ concurrency: 3 })).toThrow(
      /concurrency: must be an object such as \{ limit: 3/,
    );
    expect(refused({ rate: { limit: 3 } })).toThrow(/rate\.per: must be given.*"1m"/);
    expect(refused({ rate: { limit: 3, per: "0s" } })).toThrow(/rate\.per/);
    expect(refused({ rate: { limit: 3, per: "1m", keys: "a" } })).toThrow(/rate.*keys/);
    expect(
      refused({ concurrency: { limit: 1, key: "a" }, rate: { limit: 1, per: "1m", key: "b" } }),
    ).toThrow(/same path/);
    holdfast.job("right", {});
    const enqueue = (options: object) => holdfast.enqueue("right", {}, options);
    await expect(enqueue({ keyFor: "1m" })).rejects.toThrow(/keyFor: needs a key/);
    await expect(enqueue({ key: "k", keyFor: "soon" })).rejects.toThrow(/keyFor/);
    await expect(enqueue({ key: "k", onDuplicate: "drop" })).rejects.toThrow(/"postpone"/);
    const debounce = { key: "k", delay: "5s", onDuplicate: "postpone" };
    await expect(enqueue({ ...debounce, maxWait: "soon" })).rejects.toThrow(/maxWait/);
    await expect(enqueue({ ...debounce, maxWait: "4s" })).rejects.toThrow(
      /maxWait: must not be shorter than the delay/,
    );
    await expect(enqueue({ key: "k", delay: "5s", maxWait: "1m" })).rejects.toThrow(
      /maxWait: needs onDuplicate: "postpone" or "replace"/,
    );
    await expect(
      enqueue({ ...debounce, delay: undefined, at: new Date(0), maxWait: "1m" }),
    ).rejects.toThrow(/maxWait: needs delay instead of at/);
  });
}
