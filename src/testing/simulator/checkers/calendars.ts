// Calendars as the committed transactions left them, and what somebody who changed one may expect:
// that every schedule which used it before goes by the new rules, or by newer ones, when he is answered.

import type { EventLog } from "../event-log.js";
import type { Transaction } from "./run-places.js";
import type { ScheduleHistory } from "./schedules.js";

type Put = { readonly rules: string; readonly worldMs: number };

export class CalendarHistory {
  readonly #chronicle: EventLog;
  readonly #schedules: ScheduleHistory;
  /** Everything that a calendar has been, oldest first. */
  readonly #puts = new Map<string, Put[]>();

  constructor(chronicle: EventLog, schedules: ScheduleHistory) {
    this.#chronicle = chronicle;
    this.#schedules = schedules;
  }

  commit({ notes, worldMs }: Transaction): void {
    for (const [kind, name, rules] of notes) {
      if (kind !== "calendar+" && kind !== "calendar~") continue;
      const puts = this.#puts.get(String(name)) ?? [];
      puts.push({ rules: String(rules), worldMs });
      this.#puts.set(String(name), puts);
      if (puts.length > 1) this.#chronicle.saw("calendar-changed");
    }
  }

  /** Somebody asked for a change at this time of the world, and has been told that it is done. */
  judgeAnswered(name: string, askedMs: number): void {
    const puts = this.#puts.get(name) ?? [];
    const since = puts.findIndex(({ worldMs }) => worldMs >= askedMs);
    if (since < 0) {
      this.#chronicle.violate(
        "S11",
        `The change of calendar ${name} was answered, and is nowhere.`,
      );
      return;
    }
    const allowed = new Set(puts.slice(since).map(({ rules }) => rules));
    for (const schedule of this.#schedules.schedules.values()) {
      // Who edits a schedule looks at its calendars himself, and may not have come to it yet.
      const isSettled = schedule.deletedAt === null && schedule.editedMs < askedMs;
      const used = schedule.definition.when.calendars?.find((each) => each.name === name);
      if (used && isSettled && !allowed.has(JSON.stringify(used.rules)))
        this.#chronicle.violate(
          "T",
          `${schedule.name} goes by older rules than calendar ${name} had when it was answered for.`,
        );
    }
  }
}
