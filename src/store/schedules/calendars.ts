// Keeps named calendars. A schedule that uses one has a copy of its rules, so that its evaluation reads no calendar.

import type { CalendarRules } from "../../schedules/calendars/calendar.js";
import { type Audited, addAudit, auditedWrite } from "../audit.js";
import { json, type Row, textOrNull } from "../rows.js";
import { run, type StoreSession } from "../session.js";

const LIST = /* sql */ `
select name, rules, version, updated_at, updated_by from {calendar} order by name`;

const PUT = /* sql */ `
insert into {calendar} as c (name, rules, version, updated_at, updated_by)
values (:name, :rules, 1, {now}, :by)
on conflict (name) do update set rules = excluded.rules, version = c.version + 1,
  updated_at = excluded.updated_at, updated_by = excluded.updated_by`;

const REMOVE = /* sql */ `delete from {calendar} where name = :name returning name`;

export type CalendarRecord = {
  readonly name: string;
  readonly rules: CalendarRules;
  readonly version: number;
  readonly updatedAt: number;
  readonly updatedBy: string | null;
};

export class Calendars {
  readonly #session: StoreSession;

  constructor(session: StoreSession) {
    this.#session = session;
  }

  /** All calendars, by name. */
  async list(): Promise<readonly CalendarRecord[]> {
    return (await this.#session.read({ verb: "calendars.list", sql: LIST })).map(toCalendarRecord);
  }

  /**
   * Makes or replaces a calendar. Repeated after a lost reply it stores the same rules; only the version and the audit
   * trail count one change more.
   */
  async put({
    name,
    rules,
    by,
    audit,
  }: {
    readonly name: string;
    readonly rules: CalendarRules;
    readonly by: string | null;
  } & Audited): Promise<void> {
    await this.#session.transaction("calendars.put", { lost: "repeat" }, function* () {
      yield* run(PUT, { name, rules: JSON.stringify(rules), by });
      yield* addAudit(audit);
    });
  }

  /** Whether it existed. Repeated after a lost reply it removes nothing more. */
  async remove({ name, audit }: { readonly name: string } & Audited): Promise<boolean> {
    const statement = { verb: "calendars.remove", sql: REMOVE, params: { name }, audit };
    return (await auditedWrite(this.#session, statement)) !== undefined;
  }
}

function toCalendarRecord(row: Row): CalendarRecord {
  return {
    name: String(row.name),
    rules: json<CalendarRules>(row.rules) as CalendarRules,
    version: Number(row.version),
    updatedAt: Number(row.updated_at),
    updatedBy: textOrNull(row.updated_by),
  };
}
