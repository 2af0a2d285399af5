// Runs that end remotely: the process that receives their end emits the events and calls the hooks.

import { expect } from "vitest";
import { LeaseLostError, ResultConflictError } from "../../src/shared/errors.js";
import { heard, type World, type WorldTest } from "./world.js";

/** An instance whose job is carried out elsewhere, with hooks that note what they hear. */
async function told(world: World) {
  const hooks: unknown[] = [];
  const member = world.member();
  const job = member.holdfast.job("study", {
    retry: { attempts: 2, delay: "1s", jitter: 0 },
    onSuccess: async (run, result) => {
      const refused = await run.heartbeat().catch((error: unknown) => error);
      const isLost = refused instanceof LeaseLostError && run.signal.aborted;
      hooks.push(["success", run.job, run.attempt, result, isLost]);
    },
    onFailure: (_, error, { willRetry }) => {
      hooks.push(["failure", (error as Error).message, willRetry]);
      throw new Error("the hook itself");
    },
  });
  const { holdfast } = member;
  const claim = async () => {
    const asked = { instance: "elsewhere", jobs: ["study"], limit: 1 };
    const [run] = await world.clock.until(holdfast.remote.claim(asked));
    if (!run) throw new Error("There is nothing to claim.");
    return { id: run.id, fence: run.fence };
  };
  const { id } = await world.clock.until(job.enqueue({ n: 1 }));
  return { member, holdfast, hooks, claim, id };
}

export function remoteEndSuite(test: WorldTest): void {
  test("a completed run calls onSuccess with its result, once, with a context that holds nothing", async ({
    world,
  }) => {
    const { member, holdfast, hooks, claim } = await told(world);
    const grant = await claim();
    for (let times = 0; times < 2; times += 1)
      await world.clock.until(holdfast.remote.complete(grant, { found: 3 }));
    expect(hooks).toEqual([["success", "study", 1, { found: 3 }, true]]);
    expect(heard(member, "run.completed")).toMatchObject([{ run: grant.id, job: "study" }]);
  });

  test("a second complete under the same fence with another result is a conflict, and an equal one is not", async ({
    world,
  }) => {
    const { holdfast, hooks, claim } = await told(world);
    const grant = await claim();
    const complete = (result: unknown) =>
      world.clock.until(holdfast.remote.complete(grant, result));
    await complete({ found: 3, of: 4 });
    await expect(complete({ of: 4, found: 3 })).resolves.toBeUndefined();
    for (const other of [{ found: 4, of: 4 }, null, undefined, "3"]) {
      const refused = await complete(other).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(ResultConflictError);
      expect(refused).toMatchObject({
        code: "RESULT_CONFLICT",
        runId: grant.id,
        fence: grant.fence,
      });
    }
    expect(await holdfast.runs.get(grant.id)).toMatchObject({ result: { found: 3, of: 4 } });
    expect(hooks).toHaveLength(1);
  });

  test("of two concurrent completes with different results one is stored and the other is a conflict", async ({
    world,
  }) => {
    const { holdfast, claim } = await told(world);
    const grant = await claim();
    const both = await world.clock.until(
      Promise.allSettled([1, 2].map((result) => holdfast.remote.complete(grant, { result }))),
    );
    const refused = both.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    expect(refused).toEqual([expect.any(ResultConflictError)]);
    const stored = 1 + both.findIndex(({ status }) => status === "fulfilled");
    expect(await holdfast.runs.get(grant.id)).toMatchObject({ result: { result: stored } });
  });

  test("a failed attempt calls onFailure with whether it is retried; an error of a hook has no effect", async ({
    world,
  }) => {
    const { member, holdfast, hooks, claim, id } = await told(world);
    const error = { message: "no market" };
    await world.clock.until(holdfast.remote.fail(await claim(), { error, permanent: false }));
    await world.clock.advance(2_000);
    await world.clock.until(holdfast.remote.fail(await claim(), { error, permanent: false }));
    expect(hooks).toEqual([
      ["failure", "no market", true],
      ["failure", "no market", false],
    ]);
    expect(heard(member, "hook.failed")).toHaveLength(2);
    expect(heard(member, "run.failed")).toHaveLength(1);
    expect(await world.status(id)).toBe("failed");
  });

  test("a released run is neither: no hook is called, its attempt is refunded, and it is logged", async ({
    world,
  }) => {
    const { member, holdfast, hooks, claim, id } = await told(world);
    const grant = await claim();
    for (let times = 0; times < 2; times += 1)
      await world.clock.until(holdfast.remote.release(grant));
    expect(hooks).toEqual([]);
    expect(heard(member, "run.handed_back")).toHaveLength(1);
    expect(await world.record(id)).toMatchObject({ status: "pending", attempt: 0 });
    const again = await claim();
    expect(again.fence).toBeGreaterThan(grant.fence);
    await expect(world.clock.until(holdfast.remote.release(grant))).resolves.toBeUndefined();
    expect(await world.status(id)).toBe("running");
  });
}
