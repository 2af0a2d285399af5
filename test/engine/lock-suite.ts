// `holdfast.lock`: the results for callers, how long a lock is trusted, and its end when its function fails, replies
// are lost or its instance stops. An instance is started only where a test says so.

import { expect } from "vitest";
import {
  ConfigurationError,
  LeaseLostError,
  OutcomeUnknownError,
  ShutdownError,
  StoppedError,
  StoreUnavailableError,
} from "../../src/shared/errors.js";
import { aborted, Door, heard, type Member, type WorldTest } from "./world.js";

/** Takes the lock and keeps it until the door is opened. */
function holding(member: Member, name: string, lease = "3s") {
  const inside = new Door<{ fence: number | null; signal: AbortSignal }>();
  const door = new Door<string>();
  const answer = member.holdfast.lock(name, { lease }, async (lock) => {
    inside.open(lock);
    return door.opened;
  });
  answer.catch(() => undefined);
  return { inside: inside.opened, door, answer };
}

export function lockSuite(test: WorldTest): void {
  test("a lock gives the value of its function, its fence, and is free afterwards", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const first = await world.clock.until(holdfast.lock("import", {}, () => "one"));
    const second = await world.clock.until(holdfast.lock("import", {}, async () => "two"));
    expect([first, second]).toEqual([
      { acquired: true, value: "one", fence: 1 },
      { acquired: true, value: "two", fence: 2 },
    ]);
    expect(await holdfast.locks.list()).toEqual({ locks: [], nextCursor: null });
    const { grants } = await holdfast.locks.history();
    expect(grants.map(({ fence, state, holder }) => [fence, state, holder])).toEqual([
      [2, "released", holdfast.instanceId],
      [1, "released", holdfast.instanceId],
    ]);
  });

  test("a lock that a handler takes has the id of its run as execution", async ({ world }) => {
    const member = world.member();
    const { holdfast } = member;
    const seen: (string | null | undefined)[] = [];
    const job = holdfast.job("import", {
      run: async (_: unknown, ctx) => {
        const look = async () => {
          const { locks } = await holdfast.locks.list();
          seen.push(...locks.map(({ execution }) => execution));
        };
        await ctx.lock("import", {}, look);
        await ctx.lock("import", { execution: "of my own" }, look);
      },
    });
    const { id } = await job.enqueue({});
    await holdfast.start();
    await world.clock.until(holdfast.runs.wait(id));
    expect(seen).toEqual([id, "of my own"]);
    expect(heard(member, "lock.acquired")[0]).toMatchObject({ execution: id });
    const { grants } = await holdfast.locks.history();
    expect(grants.map(({ execution }) => execution)).toEqual(["of my own", id]);
  });

  test("nothing can be suspended under the lock of a handler", async ({ world }) => {
    const { holdfast } = world.member();
    const refused: unknown[] = [];
    const job = holdfast.job("import", {
      run: async (_: unknown, ctx) => {
        const keep = (error: unknown) => void refused.push(error);
        await ctx.lock("import", {}, async () => {
          await ctx.step("read", () => 1).catch(keep);
          await ctx.sleep("1h").catch(keep);
        });
        await ctx.step("write", () => ctx.lock("import", {}, () => 2));
      },
    });
    const { id } = await job.enqueue({});
    await holdfast.start();
    const ended = await world.clock.until(holdfast.runs.wait(id));
    expect(ended).toMatchObject({ status: "completed" });
    expect(refused).toMatchObject([{ code: "STEP_NESTED" }, { code: "WAIT_IN_STEP" }]);
  });

  test("a held lock is refused with holder and until, and is not re-entrant", async ({ world }) => {
    const one = world.member();
    const other = world.member();
    const { inside, door, answer } = holding(one, "import", "5m");
    await world.clock.until(inside);
    const { locks } = await other.holdfast.locks.list();
    for (const { holdfast } of [one, other]) {
      expect(await holdfast.lock("import", {}, () => "never")).toEqual({
        acquired: false,
        reason: "locked",
        holder: one.holdfast.instanceId,
        until: locks[0]?.until,
      });
    }
    expect(locks[0]?.until.getTime()).toBe(world.now() + 300_000);
    expect(heard(other, "lock.refused")).toMatchObject([{ lock: "import" }]);
    door.open("done");
    expect(await world.clock.until(answer)).toMatchObject({ acquired: true, value: "done" });
  });

  test("a lock is renewed for as long as its function runs, without any start", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const { inside, door, answer } = holding(one, "import");
    const { signal } = await world.clock.until(inside);
    for (let minutes = 0; minutes < 3; minutes += 1) {
      await world.clock.advance(60_000);
      expect(await other.holdfast.lock("import", {}, () => "never")).toMatchObject({
        acquired: false,
      });
    }
    expect(signal.aborted).toBe(false);
    // A third of the lease.
    expect(one.faults.of("locks.extend").length).toBeGreaterThanOrEqual(175);
    expect(one.faults.of("locks.extend").length).toBeLessThanOrEqual(185);
    door.open("done");
    expect(await world.clock.until(answer)).toMatchObject({ value: "done" });
    one.faults.clear();
    await world.clock.advance(60_000);
    expect(one.faults.of("locks.extend")).toEqual([]);
  });

  test("if the function throws, the lock is released and the error comes out", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const error = new Error("the file is missing");
    await expect(
      holdfast.lock("import", {}, () => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect(await holdfast.lock("import", {}, () => 2)).toMatchObject({ acquired: true, fence: 2 });
    expect(await holdfast.locks.stats()).toMatchObject({ released: 2, expired: 0 });
  });

  test("a lock that was lost aborts its signal at the next renewal, and the call rejects once its function has ended", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const { inside, door, answer } = holding(one, "import");
    const { signal, fence } = await world.clock.until(inside);
    one.clock.pause();
    await world.clock.advance(3_500);
    const taken = holding(other, "import", "10m");
    const next = await world.clock.until(taken.inside);
    expect(next.fence).toBeGreaterThan(fence as number);
    expect(heard(other, "lock.taken_over")).toMatchObject([
      { lock: "import", holder: one.holdfast.instanceId },
    ]);
    let isOver = false;
    answer.catch(() => {
      isOver = true;
    });
    one.clock.resume();
    expect(await world.clock.until(aborted(signal))).toBeInstanceOf(LeaseLostError);
    await world.clock.advance(10_000);
    expect(isOver).toBe(false);
    door.open("too late");
    const error = await world.clock.until(answer.catch((thrown: unknown) => thrown));
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ lock: "import", fence, runId: null });
    expect(heard(one, "lock.lost")).toHaveLength(1);
    const { locks } = await other.holdfast.locks.list();
    expect(locks).toMatchObject([{ fence: next.fence, holder: other.holdfast.instanceId }]);
    taken.door.open("done");
    await world.clock.until(taken.answer);
  });

  test("the error of a function under a lost lock is the cause of the LeaseLostError", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const why = new Error("aborted");
    const answer = holdfast.lock("import", { lease: "3s" }, async ({ signal }) => {
      await holdfast.locks.release("import", "by an operator");
      await aborted(signal);
      throw why;
    });
    const error = await world.clock.until(answer.catch((thrown: unknown) => thrown));
    expect(error).toBeInstanceOf(LeaseLostError);
    expect((error as Error).cause).toBe(why);
  });

  test("a function that ends before the loss is noticed gets the error as well", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    const answer = holdfast.lock("import", { lease: "1h" }, () => holdfast.locks.release("import"));
    await expect(world.clock.until(answer)).rejects.toBeInstanceOf(LeaseLostError);
  });

  test("a holder that slept beyond its lease keeps the lock if no other call took it", async ({
    world,
  }) => {
    const one = world.member();
    const { inside, door, answer } = holding(one, "import");
    const { signal } = await world.clock.until(inside);
    one.clock.pause();
    await world.clock.advance(60_000);
    one.clock.resume();
    await world.clock.advance(100);
    expect(signal.aborted).toBe(false);
    door.open("done");
    expect(await world.clock.until(answer)).toMatchObject({ value: "done" });
  });

  test("without answers trust runs out before the lease does, and the signal aborts", async ({
    world,
  }) => {
    const one = world.member();
    const { inside, answer, door } = holding(one, "import", "4s");
    const { signal } = await world.clock.until(inside);
    const startedAt = world.clock.wallMs();
    one.faults.goDown();
    await world.clock.until(aborted(signal));
    const afterMs = world.clock.wallMs() - startedAt;
    expect(afterMs).toBeGreaterThanOrEqual(3_000 - 300);
    expect(afterMs).toBeLessThanOrEqual(3_000);
    one.faults.comeUp();
    door.open("done");
    await expect(world.clock.until(answer)).rejects.toBeInstanceOf(LeaseLostError);
    // It was still the current grant: whoever waits for it need not wait for its end.
    expect((await one.holdfast.locks.list()).locks).toEqual([]);
  });

  test("a renewal that is never answered does not keep the next one", async ({ world }) => {
    const one = world.member();
    const { inside, door, answer } = holding(one, "import", "4s");
    const { signal } = await world.clock.until(inside);
    one.faults.swallow("locks.extend");
    await world.clock.advance(20_000);
    expect(signal.aborted).toBe(false);
    door.open("done");
    expect(await world.clock.until(answer)).toMatchObject({ value: "done" });
  });

  test("an acquire whose answer was lost is the same grant when it is repeated", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    faults.fail("locks.acquire", "after", { times: 2 });
    const answer = await world.clock.until(holdfast.lock("import", {}, () => "done"));
    expect(answer).toEqual({ acquired: true, value: "done", fence: 1 });
    expect(faults.of("locks.acquire")).toHaveLength(3);
    expect(await holdfast.locks.stats()).toMatchObject({ released: 1, acquired: 0 });
  });

  test("an answer that came after the lease had run out begins nothing unless it is renewed first", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    one.faults.keepBack("locks.acquire");
    let ran = false;
    const late = one.holdfast.lock("import", { lease: "2s" }, () => {
      ran = true;
    });
    late.catch(() => undefined);
    await world.clock.advance(5_000);
    const taken = holding(other, "import");
    await world.clock.until(taken.inside);
    one.faults.deliver("locks.acquire");
    await expect(world.clock.until(late)).rejects.toBeInstanceOf(LeaseLostError);
    expect(ran).toBe(false);
    taken.door.open("done");
    await world.clock.until(taken.answer);
  });

  test("a release whose answer was lost is repeated and was a release", async ({ world }) => {
    const { holdfast, faults } = world.member();
    faults.fail("locks.release", "after");
    expect(await world.clock.until(holdfast.lock("import", {}, () => "done"))).toMatchObject({
      acquired: true,
    });
    expect(await holdfast.locks.stats()).toMatchObject({ released: 1, acquired: 0 });
  });

  test("a lock that cannot be released leaves the value as it is and runs out by itself", async ({
    world,
  }) => {
    const one = world.member();
    one.faults.fail("locks.release", "before", { times: 100 });
    const answer = await world.clock.until(one.holdfast.lock("import", { lease: "3s" }, () => 7));
    expect(answer).toMatchObject({ acquired: true, value: 7 });
    expect(heard(one, "lock.unreleased")).toMatchObject([{ lock: "import" }]);
    await world.clock.advance(3_000);
    expect(
      await world.clock.until(one.holdfast.lock("import", { lease: "3s" }, () => 8)),
    ).toMatchObject({ value: 8 });
    expect(await one.holdfast.locks.stats()).toMatchObject({ expired: 1 });
  });

  test("an unreachable database is an error for the caller, and nothing has run", async ({
    world,
  }) => {
    const { holdfast, faults } = world.member();
    await holdfast.locks.list();
    faults.goDown();
    let ran = false;
    const asked = holdfast.lock("import", { wait: "1m" }, () => {
      ran = true;
    });
    await expect(world.clock.until(asked)).rejects.toBeInstanceOf(StoreUnavailableError);
    faults.comeUp();
    faults.fail("locks.acquire", "after", {
      times: 100,
      error: new OutcomeUnknownError("acquire"),
    });
    const unknown = holdfast.lock("import", {}, () => {
      ran = true;
    });
    await expect(world.clock.until(unknown)).rejects.toBeInstanceOf(OutcomeUnknownError);
    expect(ran).toBe(false);
  });

  test("a waiting call gets the lock when it is free, or returns when its time is over", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const { inside, door, answer } = holding(one, "import", "10m");
    await world.clock.until(inside);
    const startedAt = world.clock.wallMs();
    const impatient = other.holdfast.lock("import", { wait: "2s" }, () => "never");
    const patient = other.holdfast.lock("import", { wait: "1m" }, () => "served");
    expect(await world.clock.until(impatient)).toMatchObject({
      acquired: false,
      reason: "locked",
      holder: one.holdfast.instanceId,
    });
    expect(world.clock.wallMs() - startedAt).toBe(2_000);
    expect((await other.holdfast.locks.list()).locks).toMatchObject([{ waiting: 1 }]);
    door.open("done");
    await world.clock.until(answer);
    expect(await world.clock.until(patient)).toMatchObject({ acquired: true, value: "served" });
    expect(world.clock.wallMs() - startedAt).toBeLessThanOrEqual(2_300);
  });

  test("waiters are served by priority, then in order, and a call without wait does not overtake", async ({
    world,
  }) => {
    const members = [world.member(), world.member(), world.member()] as const;
    const { inside, door, answer } = holding(members[0], "import", "10m");
    await world.clock.until(inside);
    const served: string[] = [];
    const asked: Promise<unknown>[] = [];
    for (const [member, name, priority] of [
      [members[1], "low", -5],
      [members[1], "first", 0],
      [members[2], "second", 0],
      [members[0], "urgent", 50],
    ] as const) {
      asked.push(
        member.holdfast.lock("import", { wait: "10m", priority }, async () => {
          served.push(name);
          await member.clock.sleep(1_000);
        }),
      );
      await world.clock.advance(20);
    }
    door.open("done");
    await world.clock.until(answer);
    expect(await members[2].holdfast.lock("import", {}, () => "never")).toMatchObject({
      acquired: false,
      reason: "locked",
    });
    await world.clock.until(Promise.all(asked));
    expect(served).toEqual(["urgent", "first", "second", "low"]);
  });

  test("a waiter whose process stands still is passed by after 3 s", async ({ world }) => {
    const one = world.member();
    const still = world.member();
    const other = world.member();
    const { inside, door, answer } = holding(one, "import", "10m");
    await world.clock.until(inside);
    const first = still.holdfast.lock("import", { wait: "10m" }, () => "first");
    await world.clock.advance(100);
    const second = other.holdfast.lock("import", { wait: "10m" }, () => "second");
    await world.clock.advance(100);
    still.clock.pause();
    door.open("done");
    await world.clock.until(answer);
    const startedAt = world.clock.wallMs();
    expect(await world.clock.until(second)).toMatchObject({ value: "second" });
    expect(world.clock.wallMs() - startedAt).toBeGreaterThan(2_500);
    expect(world.clock.wallMs() - startedAt).toBeLessThanOrEqual(3_300);
    still.clock.resume();
    expect(await world.clock.until(first)).toMatchObject({ value: "first" });
  });

  test("a waiter whose answer was lost is served once", async ({ world }) => {
    const one = world.member();
    const other = world.member();
    const { inside, door, answer } = holding(one, "import", "10m");
    await world.clock.until(inside);
    const waiting = other.holdfast.lock("import", { wait: "1m" }, ({ fence }) => fence);
    await world.clock.advance(1_000);
    door.open("done");
    await world.clock.until(answer);
    other.faults.fail("locks.acquire", "after");
    expect(await world.clock.until(waiting)).toMatchObject({ value: 2, fence: 2 });
    expect(await one.holdfast.locks.stats()).toMatchObject({ released: 2, waiting: 0 });
  });

  test("a forced release frees the lock at once, is kept in history with its note, and is said", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const { inside, door, answer } = holding(one, "import", "10m");
    const { fence, signal } = await world.clock.until(inside);
    expect(await other.holdfast.locks.release("import", "stuck since the deploy")).toEqual({
      released: true,
      holder: one.holdfast.instanceId,
      fence,
    });
    expect(await other.holdfast.locks.release("import")).toEqual({ released: false });
    expect(await world.clock.until(other.holdfast.lock("import", {}, () => 1))).toMatchObject({
      acquired: true,
    });
    const { grants } = await other.holdfast.locks.history({ name: "import" });
    expect(grants.map(({ state, note }) => [state, note])).toEqual([
      ["released", null],
      ["revoked", "stuck since the deploy"],
    ]);
    expect(heard(other, "lock.revoked")).toMatchObject([{ lock: "import", fence }]);
    await world.clock.until(aborted(signal));
    door.open("too late");
    await expect(world.clock.until(answer)).rejects.toBeInstanceOf(LeaseLostError);
  });

  test("expired locks are ended once a minute by any started instance, and old history is removed", async ({
    world,
  }) => {
    const dead = world.member();
    const { inside } = holding(dead, "import");
    await world.clock.until(inside);
    dead.clock.pause();
    const living = world.member({ retention: "1h", poll: "30s" });
    await living.holdfast.start({ worker: false });
    await world.clock.advance(70_000);
    expect(heard(living, "lock.expired")).toMatchObject([
      { lock: "import", fence: 1, holder: dead.holdfast.instanceId },
    ]);
    const grants = async () => (await living.holdfast.locks.history()).grants;
    expect(await grants()).toMatchObject([{ state: "expired", heldMs: 3_000 }]);
    await world.clock.advance(7_300_000);
    expect(await grants()).toEqual([]);
  });

  test("a process that only locks tidies as well, at most once a minute", async ({ world }) => {
    const { holdfast, faults } = world.member();
    for (let times = 0; times < 5; times += 1)
      await world.clock.until(holdfast.lock("import", {}, () => 1));
    expect(faults.of("locks.tidy")).toHaveLength(1);
    await world.clock.advance(60_000);
    await world.clock.until(holdfast.lock("import", {}, () => 1));
    await world.clock.rest();
    expect(faults.of("locks.tidy")).toHaveLength(2);
  });

  test("with locking off, the function runs without a fence and every start logs that", async ({
    world,
  }) => {
    const one = world.member({ locking: false });
    const other = world.member({ locking: false });
    await one.holdfast.start();
    expect(heard(one, "locking.disabled")).toHaveLength(1);
    const answer = await one.holdfast.lock("import", {}, async ({ fence }) => {
      const inner = await other.holdfast.lock("import", {}, () => "both");
      return { fence, inner };
    });
    expect(answer).toEqual({
      acquired: true,
      fence: null,
      value: { fence: null, inner: { acquired: true, value: "both", fence: null } },
    });
    expect(heard(other, "locking.disabled")).toHaveLength(1);
    expect(one.faults.of("locks.acquire")).toEqual([]);
  });

  test("a stop ends waiting calls, gives functions their grace, then aborts them and releases their locks", async ({
    world,
  }) => {
    const one = world.member();
    const other = world.member();
    const { inside, door, answer } = holding(one, "import");
    const { signal } = await world.clock.until(inside);
    const waiting = other.holdfast.lock("import", { wait: "1h" }, () => "never");
    waiting.catch(() => undefined);
    await world.clock.advance(1_000);
    await world.clock.until(other.holdfast.stop());
    await expect(waiting).rejects.toBeInstanceOf(StoppedError);
    const stopping = one.holdfast.stop({ grace: "5s" });
    await world.clock.advance(4_900);
    expect(signal.aborted).toBe(false);
    await world.clock.advance(200);
    expect(signal.reason).toBeInstanceOf(ShutdownError);
    door.open("in the end");
    expect(await world.clock.until(answer)).toMatchObject({ acquired: true, value: "in the end" });
    await world.clock.until(stopping);
    await expect(one.holdfast.lock("import", {}, () => 1)).rejects.toBeInstanceOf(StoppedError);
  });

  test("a function that ignores its signal does not keep a stop: its lease runs out", async ({
    world,
  }) => {
    const one = world.member();
    const { inside, answer } = holding(one, "import");
    await world.clock.until(inside);
    await world.clock.until(one.holdfast.stop({ grace: "1s" }));
    const other = world.member();
    expect(
      await world.clock.until(other.holdfast.lock("import", { wait: "10s" }, () => "next")),
    ).toMatchObject({ value: "next" });
    void answer;
  });

  test("problems of a call are named, all at once, and nothing runs", async ({ world }) => {
    const { holdfast, faults } = world.member();
    const never = () => {
      throw new Error("It ran.");
    };
    const wrong = { lease: "500ms", wait: -1, priority: 101, leese: 1 } as never;
    const error = await holdfast.lock("import", wrong, never).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigurationError);
    for (const field of ["leese", "lock().lease", "lock().wait", "lock().priority"])
      expect((error as Error).message).toContain(field);
    await expect(holdfast.lock("", {}, never)).rejects.toThrow("lock(name)");
    await expect(holdfast.lock("x", undefined as never, never)).rejects.toThrow('{ lease: "5m" }');
    await expect(holdfast.lock("x", {}, undefined as never)).rejects.toThrow("must be a function");
    await expect(holdfast.locks.list({ limit: 0 })).rejects.toThrow("limit");
    await expect(holdfast.locks.history({ cursor: "x" })).rejects.toThrow("cursor");
    await expect(holdfast.locks.release("x", "y".repeat(501))).rejects.toThrow("note");
    expect(faults.of("locks.acquire")).toEqual([]);
    expect(() => world.member({ locks: {} as never, lockLease: "1ms" })).toThrow(
      /lockLease[\s\S]*redisLocks|redisLocks[\s\S]*lockLease/,
    );
  });

  test("a lock without a lease of its own has that of the configuration, 6 min by default", async ({
    world,
  }) => {
    for (const [options, leaseMs] of [
      [{}, 360_000],
      [{ lockLease: "2m" }, 120_000],
    ] as const) {
      const { holdfast } = world.member(options);
      const answer = await holdfast.lock("import", {}, () => holdfast.locks.list());
      const [lock] = answer.acquired ? answer.value.locks : [];
      expect((lock?.until.getTime() ?? 0) - world.now()).toBe(leaseMs);
    }
  });

  test("pages of locks and of history follow one another", async ({ world }) => {
    const { holdfast } = world.member();
    for (let times = 0; times < 3; times += 1) await holdfast.lock("import", {}, () => 1);
    const first = await holdfast.locks.history({ limit: 2 });
    expect(first.grants.map(({ fence }) => fence)).toEqual([3, 2]);
    const rest = await holdfast.locks.history({ limit: 2, cursor: first.nextCursor as string });
    expect(rest).toMatchObject({ grants: [{ fence: 1 }], nextCursor: null });
    await holdfast.lock("a", {}, () =>
      holdfast.lock("b", {}, async () => {
        const page = await holdfast.locks.list({ limit: 1 });
        expect(page).toMatchObject({ locks: [{ name: "a" }], nextCursor: "a" });
        const next = await holdfast.locks.list({ limit: 1, cursor: "a" });
        expect(next).toMatchObject({ locks: [{ name: "b" }], nextCursor: null });
      }),
    );
  });
}
