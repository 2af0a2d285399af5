// Checks calendars after each commit: when a change of a calendar is acknowledged, every schedule that used it before
// follows the new rules, or newer ones.

import type { EventLog } from "../event-log.js";
import type { Transaction } from "./run-places.js";
import type { ScheduleHistory } from "./schedules.js";

type Put = { readonly rules: string; readonly worldMs: number };

export class CalendarHistory {
  readonly #log: EventLog;
  readonly #schedules: ScheduleHistory;
  /** All versions of a calendar, oldest first. */
  readonly #puts = new Map<string, Put[]>();

  constructor(log: EventLog, schedules: ScheduleHistory) {
    this.#log = log;
    this.#schedules = schedules;
  }

  commit({ notes, worldMs }: Transaction): void {
    for (const [kind, name, rules] of notes) {
      if (kind !== "calendar+" && kind !== "calendar~") continue;
      const puts = this.#puts.get(String(name)) ?? [];
      puts.push({ rules: String(rules), worldMs });
      this.#puts.set(String(name), puts);
      if (puts.length > 1) this.#log.saw("calendar-changed");
    }
  }

  /** A change that was requested at this world time was acknowledged. */
  checkAnswered(name: string, askedMs: number): void {
    const puts = this.#puts.get(name) ?? [];
    const since = puts.findIndex(({ worldMs }) => worldMs >= askedMs);
    if (since < 0) {
      this.#log.violate("S11", `The change of calendar ${name} was answered, and is nowhere.`);
      return;
    }
    const allowed = new Set(puts.slice(since).map(({ rules }) => rules));
    for (const schedule of this.#schedules.schedules.values()) {
      // An edit of a schedule reads its calendars itself, and may not have reached them yet.
      const isSettled = schedule.deletedAt === null && schedule.editedMs < askedMs;
      const used = schedule.definition.when.calendars?.find((each) => each.name === name);
      if (used && isSettled && !allowed.has(JSON.stringify(used.rules)))
        this.#log.violate(
          "T",
          `${schedule.name} goes by older rules than calendar ${name} had when it was answered for.`,
        );
    }
  }
}
