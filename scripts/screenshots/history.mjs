// Writes a little more than a day of history to a database file in virtual time: with an outage, a pause, an edit, and
// random failures.

import { chanceOf, declareWorld } from "./world.mjs";

const HOURS = 30;

/** @param {string} file @param {string} modules where the compiled modules are */
export async function writeHistory(file, modules) {
  const { createTestHoldfast } = await import(`${modules}/testing/index.js`);
  const { PermanentError } = await import(`${modules}/index.js`);
  const chance = chanceOf(20_261);
  const kit = await createTestHoldfast({
    now: new Date(Date.now() - HOURS * 3_600_000),
    patience: "30s",
    options: { app: "markets", release: "2026.11.2" },
    /** @param {import("./world.mjs").Holdfast} holdfast @param {{ sleep: import("./world.mjs").Sleep }} own */
    setup: (holdfast, own) => declareWorld(holdfast, { sleep: own.sleep, chance, PermanentError }),
  });
  await kit.start();
  await kit.advance("9h");
  await kit.holdfast.schedules.upsert(
    "digest-buyers",
    { job: "send-digest", cron: "*/30 * * * *", grace: "1m" },
    { by: "ada" },
  );
  await kit.advance("14h");
  await kit.holdfast.schedules.pause(
    "rejected-listings",
    "the market asks us to slow down until noon",
    {
      by: "sam",
    },
  );
  await kit.advance("3h");
  await kit.restart({ downFor: "35m", isKilled: true });
  await kit.holdfast.lock("price-import", { lease: "5m" }, async () => undefined);
  await kit.advanceTo(new Date(Date.now() - 20_000));
  kit.database.exec(`vacuum into '${file.replaceAll("'", "''")}'`);
  await kit.close();
}
