// What a worker asks for next, by what it has heard and what it holds.

import { expect, test } from "vitest";
import { defineJob } from "../runs/rules/job.js";
import type { Claim } from "../store/store.js";
import type { RunnableJob } from "./attempt.js";
import {
  ClaimBudget,
  ClaimPlanner,
  type ClaimPlannerParams,
  NO_CLAIM_REQUEST,
} from "./claim-planner.js";

const JOBS = new Map([["study", defineJob("study", {}) as RunnableJob]]);

function demand(params: Partial<ClaimPlannerParams> = {}) {
  const made = new ClaimPlanner({
    concurrency: 4,
    jobs: JOBS,
    hands: { count: 0, bufferedCount: 0, hasRoom: true },
    quarantine: { isOn: false, isSuspectsTurn: true },
    ...params,
  });
  made.open();
  return made;
}

const claims = (count: number) => [
  { runs: Array(count).fill({ input: "{}" }) } as unknown as Claim,
];

test("nothing is asked for before somebody says that there may be work", () => {
  const hungry = demand();
  expect(hungry.order()).toEqual({ ...NO_CLAIM_REQUEST, hints: 0 });
  hungry.mayHaveWork();
  expect(hungry.order().limit).toBe(4);
});

test("a claim that brought less than it asked for is the last, unless somebody spoke up meanwhile", () => {
  const hungry = demand();
  hungry.mayHaveWork();
  const first = hungry.order();
  hungry.mayHaveWork();
  hungry.answered(first, claims(1));
  const second = hungry.order();
  expect(second.limit).toBe(4);
  hungry.answered(second, claims(1));
  expect(hungry.order().limit).toBe(0);
});

test("what is on its way counts as held until it has come", () => {
  const hungry = demand();
  hungry.mayHaveWork();
  const order = hungry.order();
  hungry.sent(order);
  expect(hungry.order().limit).toBe(0);
  hungry.returned(order);
  expect(hungry.order().limit).toBe(4);
});

test("workers that share an allowance never ask for more than is left of it", () => {
  const allowance = new ClaimBudget(5);
  const [one, other] = [demand({ allowance }), demand({ allowance })];
  for (const each of [one, other]) each.mayHaveWork();
  one.sent(one.order());
  expect(other.order().limit).toBe(1);
});

test("a suspect is asked for alone, and only by hands with nothing in the buffer", () => {
  const hands = { count: 1, bufferedCount: 1, hasRoom: true };
  const hungry = demand({ hands });
  hungry.hasSuspect();
  expect(hungry.order()).toMatchObject({ limit: 0, wantsSuspect: false });
  hands.bufferedCount = 0;
  expect(hungry.order()).toMatchObject({ limit: 1, wantsSuspect: true });
});

test("neither a halted worker nor one that stops asks for anything", () => {
  const hungry = demand();
  hungry.mayHaveWork();
  hungry.halt(true);
  expect(hungry.order().limit).toBe(0);
  hungry.halt(false);
  expect(hungry.order().limit).toBe(4);
  hungry.close();
  expect(hungry.order().limit).toBe(0);
});
