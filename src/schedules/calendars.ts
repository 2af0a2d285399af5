// Gives users `holdfast.calendars`: named sets of times at which schedules do not tick. A schedule keeps a copy of the
// rules, so that any instance can evaluate it; changing a calendar edits the schedules that use it.

import { type Actor, auditEntry } from "../operations/rules/audit.js";
import { CalendarInUseError, ConfigurationError } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import { type By, readBy, requireOptions } from "../shared/options.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { CalendarRecord } from "../store/schedules/calendars.js";
import type { ScheduleRecord } from "../store/schedules/schedules.js";
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
  /** The excluded times, in plain words. */
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
    await store.calendars.put({ name: checked, rules, by, audit });
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
    const records = await store.calendars.list();
    const schedules = records.length === 0 ? [] : await allSchedules(store);
    return records.map((record) => toCalendar(record, schedules));
  }

  /** Removes a calendar; refused while schedules use it. Returns whether there was one. */
  async delete(name: string): Promise<boolean> {
    const store = await this.#params.store();
    const users = await usersOf(store, name);
    if (users.length > 0)
      throw new CalendarInUseError(
        name,
        users.map((each) => each.name),
      );
    const audit = auditEntry(this.#params.actor, { verb: "delete", noun: "calendar", name });
    return store.calendars.remove({ name, audit });
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
  // Most schedules use no calendar: the text search avoids parsing them.
  if (!definition.includes(JSON.stringify(calendar))) return false;
  const { when } = JSON.parse(definition) as ScheduleDefinition;
  return when.calendars.some(({ name }) => name === calendar);
}

async function allSchedules(store: Store): Promise<readonly ScheduleRecord[]> {
  const all: ScheduleRecord[] = [];
  for (;;) {
    const last = all.at(-1)?.name;
    const page = await store.schedules.list({
      limit: PAGE,
      ...(last === undefined ? {} : { after: last }),
    });
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}

/**
 * Updates the copies of calendar rules that a schedule keeps. The rules are read while the change is decided, and after
 * a change of a calendar or of a schedule the other one is checked: so of two concurrent changes the last sees the first.
 */
export async function catchUpWithCalendars(params: {
  readonly store: Store;
  readonly updater: ScheduleUpdater;
  readonly name: string;
  readonly author: ChangeAuthor;
}): Promise<void> {
  const { store, updater, name, author } = params;
  await updater.change<void>(store, name, async (read) => {
    const { state } = read;
    if (!state || state.deletedAt !== null) return { result: undefined };
    const definition = JSON.parse(state.definition) as ScheduleDefinition;
    const current = new Map((await store.calendars.list()).map((each) => [each.name, each.rules]));
    const calendars = definition.when.calendars.map((each) => ({
      ...each,
      rules: current.get(each.name) ?? each.rules,
    }));
    const changed = { ...definition, when: { ...definition.when, calendars } };
    if (JSON.stringify(changed) === state.definition) return { result: undefined };
    const decision = upsertDecision(
      read,
      { ...state, definition: changed, isForced: false },
      author,
    );
    return "first" in decision ? decision : { ...decision, result: undefined };
  });
}
