// Run by Vitest: the instance of the application runs inside the test, whatever database it names.

import { createTestHoldfast } from "holdfast/testing";
import { expect, test, vi } from "vitest";

test("the weekly cleanup runs on Sundays at four", async () => {
  const kit = await createTestHoldfast({ now: "2026-06-01T00:00:00Z" });
  vi.doMock("holdfast", async (load) => ({
    .../** @type {object} */ (await load()),
    Holdfast: kit.Holdfast,
  }));
  const { holdfast } = await import("./own-instance.mjs");

  await holdfast.start();
  await kit.advance("14d");
  await kit.assertRanAt("weekly", ["2026-06-07T04:00:00Z", "2026-06-14T04:00:00Z"]);
  expect(kit.calls("cleanup")).toHaveLength(2);
  await kit.close();
});
