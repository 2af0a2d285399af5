// What a batch of settlements has in common is said once, and what differs is said of each.

import { expect, test } from "vitest";
import type { Settlement } from "../claims.js";
import { settlementColumns } from "./settlements.js";

const COMPLETED: Settlement = {
  ...{ id: "a", fence: 7, mode: "enqueued", schedule: null, batch: null, isLimited: false },
  ...{ ranMs: 0.4, error: null, to: "completed", result: "null" },
};
const RETRIED: Settlement = {
  ...{ id: "b", fence: 7, mode: "enqueued", schedule: null, batch: null, isLimited: false },
  ...{
    ranMs: 3,
    error: '{"code":"E"}',
    to: "pending",
    end: "failed",
    delayMs: 20,
    isRefund: false,
  },
};

test("values that all settlements share are sent once, and only ids are listed", () => {
  const columns = settlementColumns([COMPLETED, { ...COMPLETED, id: "b" }]);
  expect(columns).toMatchObject({ ids: "{a,b}", fence: 7, status: 1, mode: 0, ranAllMs: 0 });
  expect(columns).toMatchObject({ result: "null", error: null, schedule: null, end: null });
  const lists = Object.entries(columns).filter(([, value]) => String(value).startsWith("{"));
  expect(lists.filter(([, value]) => value !== "{}").map(([name]) => name)).toEqual(["ids"]);
});

test("differing values are listed, with nulls for settlements without one", () => {
  expect(settlementColumns([COMPLETED, RETRIED])).toMatchObject({
    ...{ ids: "{a,b}", fences: "{}", fence: 7 },
    ...{ statuses: "{1,-1}", status: null, ranMs: "{0,3}", ranAllMs: null },
    ...{ results: '{"null",NULL}', result: null },
    ...{ errors: '{NULL,"{\\"code\\":\\"E\\"}"}', error: null },
    ...{ ends: "{NULL,0}", end: null, delayMs: "{NULL,20}", delayAllMs: null },
    ...{ refunds: "{NULL,0}", refund: null, schedules: "{}", schedule: null },
  });
});

test("nothing is nothing", () => {
  const columns = settlementColumns([]);
  expect(new Set(Object.values(columns))).toEqual(new Set(["{}", null]));
});
