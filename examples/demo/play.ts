// Plays the last 24 hours of the shop into a database file, in seconds: the engine, its runs and its ledger are real,
// and only the clock is that of the test kit. The day has an outage, a provider that fails, a pause and a missed
// check-in.

import { createTestHoldfast } from "holdfast/testing";
import { chanceOf, declareShop, PARTNER } from "./shop.js";

const HOUR_MS = 3_600_000;
const HOURS = 24;
/** The events of the hour that begins this many hours ago. */
const SILENT_PARTNER = 4;
const PROVIDER_DOWN = [9, 3];
const OUTAGE = 5;
const PAUSE = 2;

/** Writes the database; `onHour` gets the number of played hours, of 24. */
export async function playDay(file: string, onHour: (done: number) => void): Promise<void> {
  const chance = chanceOf(20_261);
  let left = HOURS;
  const kit = await createTestHoldfast({
    now: new Date(Date.now() - HOURS * HOUR_MS),
    patience: "5m",
    options: { app: "demo" },
    setup: (holdfast, own) =>
      declareShop(holdfast, {
        sleep: own.sleep,
        chance,
        isProviderUp: () => !PROVIDER_DOWN.includes(left),
      }),
  });
  await kit.start({ worker: { concurrency: 8 } });
  for (; left > 1; left -= 1) {
    onHour(HOURS - left);
    const { schedules } = kit.holdfast;
    const endsAt = kit.now().getTime() + HOUR_MS;
    // Its ticks are at the full hour.
    await kit.advanceTo(new Date(Math.ceil(kit.now().getTime() / HOUR_MS) * HOUR_MS + 180_000));
    if (left !== SILENT_PARTNER) await schedules.ping(PARTNER);
    if (left === OUTAGE) await kit.restart({ downFor: "45m", isKilled: true });
    if (left === PAUSE) {
      await schedules.pause("exchange-rates", "the contract is being renewed", { by: "sam" });
      await kit.advance("35m");
      await schedules.resume("exchange-rates", { by: "sam" });
    }
    if (left === HOURS / 2) await schedules.trigger("report", { by: "ada" });
    if (endsAt > kit.now().getTime()) await kit.advanceTo(new Date(endsAt));
  }
  // The last hour ends a little before now, because playing it took a while.
  onHour(HOURS - 1);
  const fullHour = Math.ceil(kit.now().getTime() / HOUR_MS) * HOUR_MS + 180_000;
  if (fullHour < Date.now() - 60_000) {
    await kit.advanceTo(new Date(fullHour));
    await kit.holdfast.schedules.ping(PARTNER);
  }
  await kit.advanceTo(new Date(Date.now() - 60_000));
  await kit.stop();
  onHour(HOURS);
  kit.database.exec(`vacuum into '${file.replaceAll("'", "''")}'`);
  await kit.close();
}
