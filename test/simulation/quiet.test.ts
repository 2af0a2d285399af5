// Proves that the faults stop when the quiet begins, so that the checks after it judge a healthy instance.

import { expect, test } from "vitest";
import type { Fault } from "../../src/testing/simulator/faults/catalogue.js";
import { Simulation } from "../../src/testing/simulator/simulation.js";
import type { Operation } from "../../src/testing/simulator/workload/operation.js";
import { makePlan, type Plan } from "../../src/testing/simulator/workload/plan.js";

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const SETTLING_MS = 10_000;
const QUIET = "From here on nothing goes wrong";

/** Seeds with these faults alone, and with what sets up their schedules and these operations. */
async function tellEach(
  change: (plan: Plan) => {
    readonly fault: Omit<Fault, "id">;
    readonly operations: readonly Partial<Operation>[];
  },
) {
  const stories: { readonly before: string; readonly after: string }[] = [];
  for (const seed of SEEDS) {
    const plan = makePlan(seed);
    const { fault, operations } = change(plan);
    const first = plan.operations.filter(({ afterMs }) => afterMs < SETTLING_MS);
    const more = operations.map((each, at) => ({
      ...(plan.operations[0] as Operation),
      id: 1_000 + at,
      ...each,
    }));
    const { log } = await new Simulation({
      plan: { ...plan, faults: [{ id: 0, ...fault }], operations: [...first, ...more] },
      hasStory: true,
    }).run();
    expect(log.violations, `seed ${seed}`).toEqual([]);
    const [before = "", after = ""] = log.story.join("\n").split(QUIET);
    stories.push({ before, after });
  }
  return stories;
}

test("a process that restarts in the quiet does not return to a blackout that is over", async () => {
  const stories = await tellEach(({ chaosMs }) => ({
    fault: {
      kind: "blackout",
      afterMs: chaosMs - 60_000,
      place: 0,
      verbs: null,
      ms: 600_000,
    },
    operations: [
      // Taken by somebody who is gone a moment later: in the quiet there is something to wait for.
      { kind: "enqueue", job: "slow", afterMs: chaosMs - 60_001 },
      // Asked while nobody is there, and so of the first one in the quiet.
      { kind: "crash", afterMs: chaosMs - 30_000 },
    ],
  }));
  const restarted = stories.filter(({ after }) => /crashes.* starts/s.test(after));
  expect(restarted.length).toBeGreaterThan(1);
  for (const { after } of stories) expect(after).not.toContain("strikes");
});

test("a process that still waits for a late reply is not the one that is left", async () => {
  const stories = await tellEach(({ chaosMs, oldPlace }) => ({
    fault: {
      kind: "answer-late",
      afterMs: chaosMs - 70_000,
      place: oldPlace === 0 ? 1 : 0,
      verbs: ["work.poll"],
      ms: 150_000,
    },
    operations: [],
  }));
  for (const { before, after } of stories) {
    const late = /"answer-late" strikes (\w+) at work.poll/.exec(before)?.[1];
    expect(late).toBeDefined();
    expect(after).not.toContain(`${late} is left`);
  }
});
