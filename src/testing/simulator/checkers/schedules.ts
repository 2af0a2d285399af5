// Checks schedules and their ledger after each commit: S4, S5, S6, S13, S14 and S15, and that the ledger records every
// tick exactly once with its outcome.

import type { ScheduleDefinition } from "../../../schedules/rules/schedule.js";
import { OUTCOMES, REASONS } from "../../../schedules/rules/tick.js";
import type { ScheduleChange } from "../../../store/schedules/changes.js";
import type { EventLog } from "../event-log.js";
import { short } from "./effects.js";
import type { Sometimes } from "./rare-states.js";
import type { Note } from "./row-changes.js";
import { isActive, type RunFacts, type Transaction } from "./run-places.js";
import { isNearChange, oracleTicks } from "./tick-oracle.js";

/** A definition of a newer release, which this one cannot read. */
export const GARBLED = '{"when":{"kind":"cron","cron":"when the cows come home","timezone":"UTC"}}';

export type ScheduleFacts = {
  readonly id: number;
  readonly name: string;
  version: number;
  definition: ScheduleDefinition;
  definitionText: string;
  anchorAt: number;
  cursorAt: number;
  nextAt: number | null;
  pausedAt: number | null;
  brokenAt: number | null;
  deletedAt: number | null;
  isEnded: boolean;
  revision: number;
  /** When its definition last changed, in world time. */
  editedMs: number;
  /** Ticks up to the first time do not belong to this definition; ticks up to the second may. */
  floor: { readonly from: number; readonly to: number };
  /** The live runs according to its row. */
  liveText: string;
  /** Runs that are ready, wait for time alone, or are held. */
  readonly active: Set<string>;
  /** Runs that have not ended. */
  readonly unended: Set<string>;
};

type TickFacts = {
  readonly at: number;
  readonly lastAt: number;
  readonly count: number;
  readonly outcome: string;
  readonly reason: string;
  readonly run: string | null;
  readonly isReplacing: boolean;
};

const MODE = { scheduled: 1, manual: 2, test: 3, backfill: 4 } as const;

const SEEN: Readonly<Record<string, Sometimes>> = {
  late: "tick-late",
  catch_up: "tick-catch-up",
  stuck_reset: "stuck-reset",
  overlap: "tick-overlap",
  queue_full: "tick-queue-full",
  after_failure: "tick-after-failure",
  paused: "tick-paused",
  nobody: "tick-nobody",
  too_old: "tick-too-old",
  over_limit: "tick-over-limit",
  broken: "tick-broken",
};

export class ScheduleHistory {
  readonly schedules = new Map<number, ScheduleFacts>();
  readonly #log: EventLog;
  readonly #fired = new Set<string>();
  /** When a process read a schedule at a revision, by the database's clock. */
  readonly #reads = new Map<string, number>();
  /** Requested triggers, by schedule. */
  readonly asked = new Map<string, number>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  byName(name: string): ScheduleFacts | undefined {
    for (const each of this.schedules.values()) if (each.name === name) return each;
    return undefined;
  }

  read(label: string, state: { readonly id: number; readonly revision: number }, now: number) {
    this.#reads.set(`${label} ${state.id} ${state.revision}`, now);
  }

  commit(transaction: Transaction, touched: ReadonlyMap<string, RunFacts>): void {
    const ticks = new Map<number, TickFacts[]>();
    const rows = new Map<number, Note>();
    const backfilled = new Set<string>();
    const born: RunFacts[] = [];
    for (const note of transaction.notes) {
      const [kind, first] = note;
      if (kind === "tick+") push(ticks, Number(first), tickOf(note));
      else if (kind === "schedule+" || kind === "schedule~") rows.set(Number(first), note);
      else if (kind === "backfill_run+") backfilled.add(String(note[4]));
      else if (kind === "tick~")
        this.#log.violate("S4", `The ledger's row of ${note[2]} was changed.`);
      else if (kind === "run+" && note[5] !== null) {
        const run = touched.get(String(first));
        if (run) born.push(run);
      }
    }
    const overlapOf = new Map<number, string>();
    for (const run of touched.values()) {
      const schedule = run.schedule === null ? undefined : this.schedules.get(run.schedule);
      if (schedule) overlapOf.set(schedule.id, schedule.definition.overlap);
    }
    for (const [id, entries] of ticks) this.#checkTicks(id, entries, { rows, born, transaction });
    for (const run of born) this.#checkCause(run, { ticks, backfilled });
    for (const [id, note] of rows) this.#changed(id, note, transaction);
    this.#checkOverlaps(touched, overlapOf, transaction);
    for (const id of rows.keys()) this.#checkLive(id, transaction);
  }

  // ── ticks ──────────────────────────────────────────────────────────────────────────────────────

  #checkTicks(
    id: number,
    entries: readonly TickFacts[],
    around: {
      readonly rows: ReadonlyMap<number, Note>;
      readonly born: readonly RunFacts[];
      readonly transaction: Transaction;
    },
  ): void {
    const schedule = this.schedules.get(id);
    if (!schedule) {
      this.#log.violate("T", `A tick of an unknown schedule ${id}.`);
      return;
    }
    const { name } = schedule;
    for (const { at, lastAt, count, outcome, reason, run, isReplacing } of entries) {
      if (isReplacing) this.#log.saw("replaced");
      const text = `${new Date(at).toISOString()} of ${name}`;
      this.#log.narrate(
        () =>
          `${around.transaction.process.label} records ${text}: ${outcome}, ${reason}` +
          `${count > 1 ? ` (${count} until ${new Date(lastAt).toISOString()})` : ""}` +
          `${run === null ? "" : `, run ${short(run)}`}`,
      );
      const seen = SEEN[reason];
      if (seen) this.#log.saw(seen);
      if (outcome !== "fired") continue;
      if (isNearChange(schedule.definition.when.timezone, at)) this.#log.saw("dst-tick");
      const key = `${id} ${at}`;
      if (this.#fired.has(key)) this.#log.violate("S4", `Tick ${text} fired twice.`);
      this.#fired.add(key);
      const made = around.born.find((each) => each.id === run);
      if (made?.mode !== MODE.scheduled || made.nominalAt !== at)
        this.#log.violate("S6", `Tick ${text} fired, but its run was not made with it.`);
      if (schedule.pausedAt !== null || schedule.deletedAt !== null)
        this.#log.violate("S14", `Tick ${text} fired, but the schedule rests.`);
    }
  }

  #checkCause(
    run: RunFacts,
    {
      ticks,
      backfilled,
    }: {
      readonly ticks: ReadonlyMap<number, readonly TickFacts[]>;
      readonly backfilled: ReadonlySet<string>;
    },
  ): void {
    const id = run.schedule ?? 0;
    const name = this.schedules.get(id)?.name ?? "";
    if (run.mode === MODE.scheduled) {
      const tick = ticks.get(id)?.find((each) => each.run === run.id);
      if (!tick) this.#log.violate("S6", `Run ${run.id} of ${name} has no tick.`);
    } else if (run.mode === MODE.backfill) {
      this.#log.saw("backfill-ran");
      if (!backfilled.has(run.id))
        this.#log.violate("S13", `Run ${run.id} of ${name} has no backfill.`);
    } else {
      const left = (this.asked.get(name) ?? 0) - 1;
      this.asked.set(name, left);
      if (left < 0) this.#log.violate("S13", `Run ${run.id} of ${name}, which nobody asked for.`);
    }
  }

  // ── schedules ──────────────────────────────────────────────────────────────────────────────────

  #changed(id: number, note: Note, transaction: Transaction): void {
    const now = factsOf(note);
    const before = this.schedules.get(id);
    if (!before) {
      const floor = { from: now.cursorAt, to: now.cursorAt };
      const editedMs = transaction.worldMs;
      this.schedules.set(id, { ...now, editedMs, floor, active: new Set(), unended: new Set() });
      return;
    }
    const entries = transaction.notes
      .filter(([kind, schedule]) => kind === "tick+" && schedule === id)
      .map(tickOf);
    if (now.cursorAt < before.cursorAt)
      this.#log.violate("S5", `The cursor of ${now.name} went back to ${now.cursorAt}.`);
    if (now.cursorAt !== before.cursorAt || entries.length > 0)
      this.#checkLedger(before, now.cursorAt, entries);
    if (before.brokenAt === null && now.brokenAt !== null) this.#log.saw("schedule-broken");
    if (!before.isEnded && now.isEnded) this.#log.saw("schedule-ended");
    if (before.deletedAt !== null && now.deletedAt === null) this.#log.saw("schedule-recreated");
    if (before.version !== now.version) {
      before.floor = { from: this.#readAt(id, transaction), to: transaction.now };
      before.editedMs = transaction.worldMs;
    }
    Object.assign(before, now);
  }

  /** Every tick in (before, now] has one row, and there is no other row. */
  #checkLedger(before: ScheduleFacts, cursorAt: number, entries: readonly TickFacts[]): void {
    const { when } = before.definition;
    const { name } = before;
    const text = (at: number) => new Date(at).toISOString();
    let last = before.cursorAt;
    for (const { at, lastAt, count } of entries) {
      if (at <= last || lastAt < at || lastAt > cursorAt)
        this.#log.violate(
          "S5",
          `${name}: ${text(at)} to ${text(lastAt)} is not within ${text(last)} to ${text(cursorAt)}.`,
        );
      last = lastAt;
      if (when.kind === "range" && count !== 1)
        this.#log.violate("T", `${name}: a drawn tick was recorded as a stretch.`);
    }
    if (when.kind === "range" || before.definitionText === GARBLED) return;
    const range = { anchorAt: before.anchorAt, after: before.cursorAt, until: cursorAt };
    // A deleted schedule has no ticks, whatever its cursor is when it is created again.
    const expected = before.deletedAt === null ? oracleTicks(when, range) : [];
    if (when.calendars.length > 0) this.#checkCalendars(before, range, expected);
    const covered = new Set<number>();
    for (const { at, lastAt, count } of entries) {
      const inside = expected.filter((tick) => tick >= at && tick <= lastAt);
      if (inside.length !== count || inside[0] !== at || inside.at(-1) !== lastAt)
        this.#log.violate(
          "T",
          `${name}: ${count} from ${text(at)} to ${text(lastAt)}, but the ticks are ${inside.map(text)}.`,
        );
      for (const tick of inside) covered.add(tick);
    }
    const { floor } = before;
    for (const tick of expected) {
      if (!covered.has(tick) && tick > floor.to)
        this.#log.violate("T", `${name}: no row for ${text(tick)}, though the cursor passed.`);
      if (covered.has(tick) && tick <= floor.from)
        this.#log.violate(
          "T",
          `${name}: ${text(tick)} was recorded, but lies before the definition of ${text(floor.from)}.`,
        );
    }
  }

  /** Whether a calendar excluded a tick. */
  #checkCalendars(
    { definition: { when } }: ScheduleFacts,
    range: Parameters<typeof oracleTicks>[1],
    expected: readonly number[],
  ): void {
    const all = oracleTicks({ ...when, calendars: [] }, range);
    if (all.length > expected.length) this.#log.saw("calendar-excluded");
  }

  #readAt(id: number, { process, params, now }: Transaction): number {
    const { changes } = params as { readonly changes?: readonly ScheduleChange[] };
    const change = changes?.find((each) => each.id === id);
    return this.#reads.get(`${process.label} ${id} ${change?.revision}`) ?? now;
  }

  // ── overlap ────────────────────────────────────────────────────────────────────────────────────

  /** A run that its schedule forgot could be overlapped, and its gate would never open. */
  #checkLive(id: number, { verb }: Transaction): void {
    const schedule = this.schedules.get(id);
    if (!schedule || schedule.unended.size === 0) return;
    for (const run of schedule.unended) {
      if (!schedule.liveText.includes(run))
        this.#log.violate("S15", `After ${verb}, ${schedule.name} forgot its run ${run}.`);
    }
  }

  #checkOverlaps(
    touched: ReadonlyMap<string, RunFacts>,
    overlapOf: ReadonlyMap<number, string>,
    { verb }: Transaction,
  ): void {
    const begun: RunFacts[] = [];
    for (const run of touched.values()) {
      const schedule = run.schedule === null ? undefined : this.schedules.get(run.schedule);
      if (!schedule) continue;
      const isNowActive = isActive(run);
      if (run.status === null) schedule.unended.add(run.id);
      else schedule.unended.delete(run.id);
      if (isNowActive) schedule.active.add(run.id);
      else schedule.active.delete(run.id);
      if (isNowActive && !run.wasActive) begun.push(run);
    }
    for (const { id, schedule } of begun) {
      const facts = this.schedules.get(schedule ?? 0);
      const overlap = overlapOf.get(schedule ?? 0) ?? facts?.definition.overlap;
      if (!facts || facts.active.size < 2 || (overlap !== "skip" && overlap !== "queue")) continue;
      this.#log.violate(
        "S15",
        `After ${verb}, ${facts.name} (${overlap}) has the runs ${[...facts.active].map(short)}, ` +
          `${short(id)} newly so.`,
      );
    }
  }

  // ── once faults have stopped ───────────────────────────────────────────────────────────────────

  /** Returns due ticks of active schedules that are not in the ledger. */
  overdue(nowMs: number): string[] {
    const found: string[] = [];
    for (const each of this.schedules.values()) {
      const isAtRest = each.pausedAt ?? each.brokenAt ?? each.deletedAt;
      if (isAtRest !== null || each.isEnded || each.definitionText === GARBLED) continue;
      if (each.definition.when.kind === "range") {
        if (each.nextAt === null || each.nextAt <= nowMs)
          found.push(`${each.name}: ${each.nextAt} is due`);
        continue;
      }
      const after = Math.max(each.cursorAt, each.floor.to);
      // A monitor's tick is decided when its grace is over; a start just before that begins the grace again.
      const waitMs = each.definition.monitor ? 2 * each.definition.graceMs : 0;
      const due = oracleTicks(each.definition.when, {
        anchorAt: each.anchorAt,
        after,
        until: nowMs - waitMs,
      });
      if (due[0] !== undefined)
        found.push(`${each.name}: ${new Date(due[0]).toISOString()} is due and not recorded`);
    }
    return found;
  }
}

function tickOf(note: Note): TickFacts {
  const [, , at, lastAt, count, outcome, reason, run] = note;
  return {
    at: Number(at),
    lastAt: Number(lastAt),
    count: Number(count),
    outcome: OUTCOMES[Number(outcome)] ?? "",
    reason: REASONS[Number(reason)] ?? "",
    run: run === null ? null : String(run),
    isReplacing: String(note[9]).includes("replaced"),
  };
}

function factsOf(note: Note): Omit<ScheduleFacts, "editedMs" | "floor" | "active" | "unended"> {
  const [, id, name, version, definition, anchorAt, cursorAt, nextAt, paused, broken, deleted] =
    note;
  const orNull = (value: string | number | null | undefined) =>
    value === null || value === undefined ? null : Number(value);
  return {
    id: Number(id),
    name: String(name),
    version: Number(version),
    definition: parsed(String(definition)),
    definitionText: String(definition),
    anchorAt: Number(anchorAt),
    cursorAt: Number(cursorAt),
    nextAt: orNull(nextAt),
    pausedAt: orNull(paused),
    brokenAt: orNull(broken),
    deletedAt: orNull(deleted),
    isEnded: note[11] === 1,
    revision: Number(note[12]),
    liveText: String(note[13]),
  };
}

const definitions = new Map<string, ScheduleDefinition>();

/** There are few definitions, and they are read often. */
function parsed(text: string): ScheduleDefinition {
  let definition = definitions.get(text);
  if (!definition) {
    if (definitions.size > 5_000) definitions.clear();
    definition = JSON.parse(text) as ScheduleDefinition;
    definitions.set(text, definition);
  }
  return definition;
}

function push<Key, Value>(map: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
