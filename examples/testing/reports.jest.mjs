// Run by Jest: NODE_OPTIONS=--experimental-vm-modules jest reports.jest.mjs

import { afterAll, beforeAll, expect, jest, test } from "@jest/globals";
import { createTestHoldfast } from "holdfast/testing";
import { register } from "./reports.mjs";

const send = jest.fn(async () => {});
/** @type {import("holdfast/testing").TestKit<ReturnType<typeof register>>} */
let kit;

beforeAll(async () => {
  kit = await createTestHoldfast({
    now: "2026-06-01T00:00:00Z",
    setup: (holdfast) => register(holdfast, { send, readers: ["ada@example.org", "nobody"] }),
  });
  await kit.start();
});
afterAll(() => kit.close());

test("a week of reports", async () => {
  await kit.advance("7d");
  expect(await kit.ranAt("nightly")).toHaveLength(7);
  expect(send).toHaveBeenCalledTimes(7);
});

test("what is no address fails at the first attempt", async () => {
  const failed = await kit.runs({ job: "mail", status: "failed" });
  expect(failed).toHaveLength(7);
  expect(failed.every(({ attempt }) => attempt === 1)).toBe(true);
  await expect(kit.assertNoFailures()).rejects.toThrow(/nobody is no address/);
});
