// Run by Node's own test runner: node --test reports.node.mjs

import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestHoldfast } from "holdfast/testing";
import { register } from "./reports.mjs";

const around = { send: async () => {}, readers: ["ada@example.org"] };

test("a report whose process is killed comes all the same, and sends no mail twice", async () => {
  const kit = await createTestHoldfast({
    now: "2026-06-01T00:00:00Z",
    setup: (holdfast) => register(holdfast, around),
  });
  // The process dies during the sending of the mail: it was sent, but that was never stored.
  kit.replace(kit.app.mail, kit.hang);
  await kit.start();
  await kit.advanceTo("2026-06-01T06:30:05Z");
  kit.restore("mail");
  await kit.restart({ isKilled: true });
  await kit.untilIdle();

  assert.deepEqual(
    kit.calls("mail").map(({ attempt, outcome }) => ({ attempt, outcome })),
    [
      { attempt: 1, outcome: "running" },
      { attempt: 2, outcome: "returned" },
    ],
  );
  await kit.assertEnqueued("mail", { text: "Report of 2026-06-01" }, { times: 1 });
  await kit.assertNoFailures();
  await kit.close();
});
