// A schedule that was removed from the code of an application without a name, in a real file.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";

test("without an option the app is the package, and a schedule removed from its code is paused", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-vanished-"));
  const lines: object[] = [];
  const hear = (fields: object) => void lines.push(fields);
  const process = () =>
    new Holdfast({
      database: `sqlite:${path.join(folder, "app.db")}`,
      logger: { debug: hear, info: hear, warn: hear, error: hear },
    });
  try {
    const old = process();
    const study = old.job("study", { run: async () => undefined });
    old.schedule("nightly", study, { cron: "0 3 * * *" });
    await old.start();
    expect((await old.schedules.get("nightly"))?.app).toBe("holdfast");
    await old.stop();
    const young = process();
    young.job("study", { run: async () => undefined });
    await young.start();
    expect(await young.schedules.get("nightly")).toMatchObject({
      ...{ status: "paused", pausedBy: "holdfast" },
    });
    expect(lines).toContainEqual(
      expect.objectContaining({ event: "schedule.vanished", schedule: "nightly", isPaused: true }),
    );
    await young.stop();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
