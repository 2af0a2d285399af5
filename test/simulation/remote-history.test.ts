// Tests the checker of remote workers: the responses to an end, and the refusals that are right.

import { expect, test } from "vitest";
import { RemoteHistory } from "../../src/testing/simulator/checkers/remote.js";
import type { RunHistory } from "../../src/testing/simulator/checkers/runs.js";
import type { EventLog } from "../../src/testing/simulator/event-log.js";

const GRANT = { id: "run", fence: 31 };
const KEY = "run 31";

/** The violations that the checker reports for an end, after the run was settled in this way. */
function judged(settled: { readonly isCancelled: boolean }, isAccepted: boolean): string[] {
  const said: string[] = [];
  const log = { violate: (promise: string) => said.push(promise), saw: () => undefined };
  const runs = {
    removed: new Set(),
    ends: new Map([[KEY, "settled"]]),
    cancelledEnds: new Set(settled.isCancelled ? [KEY] : []),
  };
  const history = new RemoteHistory(log as unknown as EventLog, runs as unknown as RunHistory);
  history.ended(GRANT, isAccepted);
  return said;
}

test("an end that took effect must not be called lost", () => {
  expect(judged({ isCancelled: false }, false)).toEqual(["S3"]);
  expect(judged({ isCancelled: false }, true)).toEqual([]);
});

test("a worker that completes a run which was cancelled under its fence may get lease_lost", () => {
  expect(judged({ isCancelled: true }, false)).toEqual([]);
  expect(judged({ isCancelled: true }, true)).toEqual([]);
});
