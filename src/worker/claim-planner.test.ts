// Checks how many runs the next claim requests, by the wake-ups received and the runs held.

import { expect, test } from "vitest";
import { defineJob } from "../runs/rules/job.js";
import type { Claim } from "../store/claims.js";
import type { RunnableJob } from "./attempt.js";
import {
  ClaimBudget,
  ClaimPlanner,
  type ClaimPlannerParams,
  NO_CLAIM_REQUEST,
} from "./claim-planner.js";

const NO_SUSPECT = { isOn: false, isSuspectsTurn: true };
const JOBS = new Map([["study", defineJob("study", {}) as RunnableJob]]);

function claimPlanner(params: Partial<ClaimPlannerParams> = {}) {
  const made = new ClaimPlanner({
    concurrency: 4,
    jobs: JOBS,
    slots: { count: 0, bufferedCount: 0, hasRoom: true, quarantine: NO_SUSPECT },
    ...params,
  });
  made.open();
  return made;
}

const claims = (count: number) => [
  { runs: Array(count).fill({ input: "{}" }) } as unknown as Claim,
];

test("nothing is claimed before a wake-up says that there may be work", () => {
  const planner = claimPlanner();
  expect(planner.nextRequest()).toEqual({ ...NO_CLAIM_REQUEST, hints: 0 });
  planner.mayHaveWork();
  expect(planner.nextRequest().limit).toBe(4);
});

test("a claim that brought less than it requested is the last, unless a wake-up arrived while it was in flight", () => {
  const planner = claimPlanner();
  planner.mayHaveWork();
  const first = planner.nextRequest();
  planner.mayHaveWork();
  planner.claimed(first, claims(1));
  const second = planner.nextRequest();
  expect(second.limit).toBe(4);
  planner.claimed(second, claims(1));
  expect(planner.nextRequest().limit).toBe(0);
});

test("a claim in flight counts as held until its answer arrives", () => {
  const planner = claimPlanner();
  planner.mayHaveWork();
  const request = planner.nextRequest();
  planner.sent(request);
  expect(planner.nextRequest().limit).toBe(0);
  planner.ended(request);
  expect(planner.nextRequest().limit).toBe(4);
});

test("workers that share a claim budget never request more than is left of it", () => {
  const claimBudget = new ClaimBudget(5);
  const [one, other] = [claimPlanner({ claimBudget }), claimPlanner({ claimBudget })];
  for (const each of [one, other]) each.mayHaveWork();
  one.sent(one.nextRequest());
  expect(other.nextRequest().limit).toBe(1);
});

test("a suspect is claimed alone, and only when no claimed run waits for a slot", () => {
  const slots = { count: 1, bufferedCount: 1, hasRoom: true, quarantine: NO_SUSPECT };
  const planner = claimPlanner({ slots });
  planner.hasSuspect();
  expect(planner.nextRequest()).toMatchObject({ limit: 0, wantsSuspect: false });
  slots.bufferedCount = 0;
  expect(planner.nextRequest()).toMatchObject({ limit: 1, wantsSuspect: true });
});

test("neither a paused worker nor a stopping one claims anything", () => {
  const planner = claimPlanner();
  planner.mayHaveWork();
  planner.setPaused(true);
  expect(planner.nextRequest().limit).toBe(0);
  planner.setPaused(false);
  expect(planner.nextRequest().limit).toBe(4);
  planner.close();
  expect(planner.nextRequest().limit).toBe(0);
});
