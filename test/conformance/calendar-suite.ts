// Calendars: rules under a name, the newest of them.

import { expect } from "vitest";
import type { CalendarRules } from "../../src/schedules/calendars/calendar.js";
import type { SceneTest } from "./scene.js";

const RULES: CalendarRules = {
  timezone: "Europe/Berlin",
  days: ["mon", "fri"],
  dates: ["12-24..12-26", "2026-05-01"],
  windows: [],
  events: [],
};
const OTHER: CalendarRules = { ...RULES, timezone: null, days: null, dates: [] };

export function calendarSuite(test: SceneTest): void {
  test("calendars are listed in the order of their names", async ({ scene }) => {
    expect(await scene.store.calendars.list()).toEqual([]);
    await scene.store.calendars.put({ name: "us", rules: RULES, by: "ann" });
    await scene.store.calendars.put({ name: "de", rules: OTHER, by: null });
    const now = scene.now;
    expect(await scene.store.calendars.list()).toEqual([
      { name: "de", rules: OTHER, version: 1, updatedAt: now, updatedBy: null },
      { name: "us", rules: RULES, version: 1, updatedAt: now, updatedBy: "ann" },
    ]);
  });

  test("putting a calendar again replaces its rules and raises its version", async ({ scene }) => {
    await scene.store.calendars.put({ name: "de", rules: RULES, by: "ann" });
    await scene.store.calendars.put({ name: "us", rules: RULES, by: "ann" });
    for (let version = 2; version < 5; version += 1) {
      scene.advance(1_000);
      await scene.store.calendars.put({ name: "de", rules: OTHER, by: "bob" });
      expect(await scene.store.calendars.list()).toMatchObject([
        { name: "de", rules: OTHER, version, updatedAt: scene.now, updatedBy: "bob" },
        { name: "us", version: 1 },
      ]);
    }
  });

  test("a removed calendar is gone, and a missing one cannot be removed", async ({ scene }) => {
    await scene.store.calendars.put({ name: "de", rules: RULES, by: null });
    await scene.store.calendars.put({ name: "us", rules: OTHER, by: null });
    expect(await scene.store.calendars.remove({ name: "de" })).toBe(true);
    expect(await scene.store.calendars.remove({ name: "de" })).toBe(false);
    expect(await scene.store.calendars.list()).toMatchObject([{ name: "us" }]);
  });

  test("concurrent writes of the same calendar count one by one", async ({ scene }) => {
    const put = () => scene.store.calendars.put({ name: "de", rules: RULES, by: null });
    await Promise.all(Array.from({ length: 10 }, put));
    expect(await scene.store.calendars.list()).toMatchObject([{ name: "de", version: 10 }]);
  });
}
