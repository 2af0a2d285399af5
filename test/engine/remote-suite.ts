// Tests the responses to remote workers that end a run: the truth about that attempt, also when another caller has
// ended it the same way before.

import { expect } from "vitest";
import { LeaseLostError } from "../../src/shared/errors.js";
import { expectEnded, type WorldTest } from "./world.js";

const FAILURE = { error: { message: "It went wrong far away." }, permanent: true } as const;

export function remoteSuite(test: WorldTest): void {
  test("a failure that was reported twice is acknowledged twice", async ({ world }) => {
    const { holdfast } = world.member();
    holdfast.job("far", { lease: "10s" });
    const { id } = await holdfast.enqueue("far", null);
    const [run] = await holdfast.remote.claim({ instance: "far-1", jobs: ["far"], limit: 1 });
    const grant = { id, fence: run?.fence ?? 0 };
    await holdfast.remote.fail(grant, FAILURE);
    await holdfast.remote.fail(grant, FAILURE);
    expectEnded(await world.record(id), "failed", 1);
  });

  test("a run that was taken away and failed for that was not failed by its worker", async ({
    world,
  }) => {
    const { holdfast } = world.member();
    holdfast.job("far", { lease: "10s", retry: { attempts: 1 } });
    await holdfast.start();
    const { id } = await holdfast.enqueue("far", null);
    const [run] = await holdfast.remote.claim({ instance: "far-1", jobs: ["far"], limit: 1 });
    await world.clock.advance(15_000);
    expectEnded(await world.record(id), "failed", 1);
    const late = holdfast.remote.fail({ id, fence: run?.fence ?? 0 }, FAILURE);
    await expect(late).rejects.toThrow(LeaseLostError);
  });

  test("a run whose cancel was enforced was not ended by its worker", async ({ world }) => {
    const { holdfast } = world.member();
    holdfast.job("far", { lease: "5m" });
    await holdfast.start();
    const { id } = await holdfast.enqueue("far", null);
    const [run] = await holdfast.remote.claim({ instance: "far-1", jobs: ["far"], limit: 1 });
    await holdfast.runs.cancel(id);
    await world.clock.advance(40_000);
    expectEnded(await world.record(id), "cancelled", 1);
    const late = holdfast.remote.fail({ id, fence: run?.fence ?? 0 }, FAILURE);
    await expect(late).rejects.toThrow(LeaseLostError);
  });
}
