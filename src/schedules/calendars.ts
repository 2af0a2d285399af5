// `holdfast.calendars`: named sets of times at which schedules do not tick. A schedule keeps a copy of
// the rules, so that any instance can evaluate it; changing a calendar edits the schedules that use it.

import { type Actor, auditEntry } from "../operations/rules/audit.js";
import { CalendarInUseError, ConfigurationError } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import { type By, readBy, requireOptions } from "../shared/options.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { CalendarRecord, ScheduleRecord } from "../store/schedule-store.js";
import type { Store } from "../store/store.js";
import {
  CALENDAR_MEMBERS,
  type CalendarOptions,
  type CalendarRules,
  describeCalendar,
  readCalendar,
} from "./calendars/calendar.js";
import { type ChangeAuthor, upsertDecision } from "./edit.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import type { ScheduleUpdater } from "./updater.js";

export type Calendar = {
  readonly name: string;
  /** What it leaves out, in plain words. */
  readonly description: string;
  readonly rules: CalendarRules;
  /** The schedules that use it. */
  readonly schedules: readonly string[];
  readonly version: number;
  readonly updatedAt: Date;
  readonly updatedBy: string | null;
};

const PAGE = 1_000;

export type CalendarsParams = {
  readonly store: () => Promise<Store>;
  readonly actor: Actor;
  /** Gives a schedule the present rules of the calendars that it uses. */
  readonly applyTo: (schedule: string) => Promise<void>;
};

export class Calendars {
  readonly #params: CalendarsParams;

  constructor(params: CalendarsParams) {
    this.#params = params;
  }

  /** Makes or changes a calendar; schedules that use it tick by the new rules from now on. */
  async upsert(name: string, options: CalendarOptions, asked?: By): Promise<Calendar> {
    const by = readBy(asked, "calendars.upsert()") ?? null;
    const checked = requireName(name, "calendars.upsert(name)");
    requireOptions(options, "calendars.upsert()");
    const unknown = refuseUnknownMembers(options, CALENDAR_MEMBERS, "calendars.upsert()");
    if (unknown.length > 0) throw new ConfigurationError(unknown);
    const rules = readCalendar(options, "calendars.upsert()");
    const store = await this.#params.store();
    const facts = { verb: "set", noun: "calendar", name: checked } as const;
    const change = describeCalendar(rules);
    const audit = auditEntry(this.#params.actor, { ...facts, change }, by);
    await store.putCalendar({ name: checked, rules, by, audit });
    for (const { name: schedule } of await usersOf(store, checked))
      await this.#params.applyTo(schedule);
    return (await this.get(checked)) as Calendar;
  }

  /** One calendar; null: there is none. */
  async get(name: string): Promise<Calendar | null> {
    return (await this.list()).find((calendar) => calendar.name === name) ?? null;
  }

  /** All of them, by name. */
  async list(): Promise<readonly Calendar[]> {
    const store = await this.#params.store();
    const records = await store.calendars();
    const schedules = records.length === 0 ? [] : await allSchedules(store);
    return records.map((record) => toCalendar(record, schedules));
  }

  /** Refused while schedules use it. True if there was one. */
  async delete(name: string): Promise<boolean> {
    const store = await this.#params.store();
    const users = await usersOf(store, name);
    if (users.length > 0)
      throw new CalendarInUseError(
        name,
        users.map((each) => each.name),
      );
    const audit = auditEntry(this.#params.actor, { verb: "delete", noun: "calendar", name });
    return store.removeCalendar({ name, audit });
  }
}

function toCalendar(record: CalendarRecord, schedules: readonly ScheduleRecord[]): Calendar {
  const { name, rules, version, updatedAt, updatedBy } = record;
  return {
    name,
    rules,
    version,
    updatedBy,
    updatedAt: new Date(updatedAt),
    description: describeCalendar(rules),
    schedules: schedules.filter((each) => uses(each, name)).map((each) => each.name),
  };
}

async function usersOf(store: Store, calendar: string): Promise<readonly ScheduleRecord[]> {
  return (await allSchedules(store)).filter((record) => uses(record, calendar));
}

function uses({ definition }: ScheduleRecord, calendar: string): boolean {
  // Most schedules use none: no need to read them whole.
  if (!definition.includes(JSON.stringify(calendar))) return false;
  const { when } = JSON.parse(definition) as ScheduleDefinition;
  return when.calendars.some(({ name }) => name === calendar);
}

async function allSchedules(store: Store): Promise<readonly ScheduleRecord[]> {
  const all: ScheduleRecord[] = [];
  for (;;) {
    const last = all.at(-1)?.name;
    const page = await store.schedules({
      limit: PAGE,
      ...(last === undefined ? {} : { after: last }),
    });
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}

// A schedule keeps copies of the rules of its calendars; here they are brought up to date. The rules
// are read where the change is decided, and whoever changed a calendar or a schedule looks at the
// other one afterwards: so the last of two at the same time sees what the first has done.

export async function catchUpWithCalendars(params: {
  readonly store: Store;
  readonly updater: ScheduleUpdater;
  readonly name: string;
  readonly author: ChangeAuthor;
}): Promise<void> {
  const { store, updater, name, author } = params;
  await updater.change<void>(store, name, async (read) => {
    const { state } = read;
    if (!state || state.deletedAt !== null) return { answer: undefined };
    const definition = JSON.parse(state.definition) as ScheduleDefinition;
    const current = new Map((await store.calendars()).map((each) => [each.name, each.rules]));
    const calendars = definition.when.calendars.map((each) => ({
      ...each,
      rules: current.get(each.name) ?? each.rules,
    }));
    const changed = { ...definition, when: { ...definition.when, calendars } };
    if (JSON.stringify(changed) === state.definition) return { answer: undefined };
    const decision = upsertDecision(
      read,
      { ...state, definition: changed, isForced: false },
      author,
    );
    return "first" in decision ? decision : { ...decision, answer: undefined };
  });
}
