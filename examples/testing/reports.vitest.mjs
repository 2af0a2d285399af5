// Run by Vitest: vitest run reports.vitest.mjs

import { createTestHoldfast } from "holdfast/testing";
import { afterEach, expect, test, vi } from "vitest";
import { register } from "./reports.mjs";

const send = vi.fn(async () => {});
const kit = await createTestHoldfast({
  now: "2026-03-07T12:00:00-05:00",
  setup: (holdfast) => register(holdfast, { send, readers: ["ada@example.org"] }),
});
await kit.start();
afterEach(() => send.mockReset());

test("the report comes every night, also when the clocks jump over half past two", async () => {
  await kit.advance("2d");
  await kit.assertRanAt("nightly", ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"]);
  await kit.assertEnqueued("mail", { to: "ada@example.org" }, { times: 2 });
  expect(send).toHaveBeenCalledTimes(2);
});

test("a mail server that is away is tried again after 10, 20 and 40 seconds", async () => {
  send.mockRejectedValue(new Error("no answer"));
  const { id } = await kit.app.mail.enqueue({ to: "bob@example.org", text: "Hello" });
  const run = await kit.until(kit.holdfast.runs.wait(id));
  expect(run).toMatchObject({ status: "failed", attempt: 4, durationMs: expect.any(Number) });
  const times = kit
    .calls("mail")
    .slice(-4)
    .map(({ startedAt }) => startedAt.getTime());
  expect(times.map((time) => (time - Number(times[0])) / 1000)).toEqual([0, 10, 30, 70]);
});

test("after an outage of a day the last report is not sent: it is too old", async () => {
  await kit.restart({ downFor: "1d" });
  const [tick] = (await kit.ticks("nightly")).slice(-1);
  expect(tick).toMatchObject({ outcome: "missed", reason: "too_old" });
  await kit.close();
});
