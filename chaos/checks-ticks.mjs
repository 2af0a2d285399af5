// Checks schedules: the ledger against the definitions, runs against the ledger, and the runs of one schedule against
// each other.

import { Finder, groupBy } from "./findings.mjs";

/** @typedef {import("./checks.mjs").History} History */
/** @typedef {import("./checks.mjs").RunFacts} RunFacts */
/** @typedef {import("./tables.mjs").Row} Row */

const SCHEDULED = 1;
const FIRED = 0;

/** The ledger has each tick of the definition exactly once, from the first to the cursor. */
export function judgeTicks(/** @type {History} */ { tables, makeWhen }) {
  const found = new Finder();
  const scheduled = groupBy(
    tables.runs.filter(({ mode }) => mode === SCHEDULED),
    ({ schedule, nominal_at }) => `${schedule} ${nominal_at}`,
  );
  const rowsOf = groupBy(tables.ticks, ({ schedule }) => schedule);
  for (const [tick, runs] of scheduled)
    if (runs.length > 1) found.add("S4", `Tick ${tick} has ${runs.length} scheduled runs.`);
  let fired = 0;
  for (const { schedule, at, outcome, run, count } of tables.ticks) {
    const [made] = scheduled.get(`${schedule} ${at}`) ?? [];
    if (outcome === FIRED) fired += 1;
    if (
      (outcome === FIRED) !== (run !== null) ||
      (made?.id ?? null) !== run ||
      (run && count !== 1)
    )
      found.add("S6", `Tick ${schedule} ${text(at)} has run ${run}, the runs say ${made?.id}.`);
  }
  if (fired !== scheduled.size)
    found.add("S6", `${fired} ticks fired, but ${scheduled.size} have a run.`);
  for (const schedule of tables.schedules) {
    const rows = rowsOf.get(schedule.id) ?? [];
    const { when } = JSON.parse(schedule.definition);
    if (schedule.broken_at !== null) found.add("L", `${schedule.name} is broken.`);
    if (rows.length === 0) found.add("L", `${schedule.name} never ticked.`);
    rows.forEach((row, at) => {
      const before = rows[at - 1];
      if (
        row.last_at < row.at ||
        (before && row.at <= before.last_at) ||
        row.last_at > schedule.cursor_at
      )
        found.add("S5", `${schedule.name}: the ledger goes back at ${text(row.at)}.`);
    });
    if (when.kind === "range") judgeRange({ name: schedule.name, rows, when }, found);
    else judgeGrid({ schedule, rows, next: makeWhen(when, schedule.anchor_at) }, found);
  }
  return found.all;
}

/**
 * Each tick is drawn from the end of the run before it, so none follows a fired tick sooner than the lower bound. Skipped
 * ticks are not measured: the end of a run may wait for the row that records a skipped tick, and counts from before it.
 * @param {{ name: string, rows: Row[], when: any }} params
 * @param {Finder} found
 */
function judgeRange({ name, rows, when }, found) {
  /** @type {number | null} */
  let firedAt = null;
  for (const row of rows) {
    if (row.count !== 1) found.add("T", `${name}: a drawn tick is a stretch at ${text(row.at)}.`);
    if (firedAt !== null && row.at < firedAt + when.everyMs)
      found.add("T", `${name}: ${text(row.at)} is too soon after ${text(firedAt)}.`);
    if (row.outcome === FIRED) firedAt = row.at;
  }
}

/**
 * @param {{ schedule: Row, rows: Row[], next: { next(afterMs: number): number | null } }} params
 * @param {Finder} found
 */
function judgeGrid({ schedule, rows, next }, found) {
  const { name } = schedule;
  let expected = next.next(schedule.anchor_at);
  for (const { at, last_at, count } of rows) {
    if (at !== expected)
      found.add("T", `${name}: recorded ${text(at)}, but ${expected && text(expected)} was next.`);
    let counted = 0;
    let last = null;
    for (expected = at; expected !== null && expected <= last_at; expected = next.next(expected)) {
      counted += 1;
      last = expected;
    }
    if (counted !== count || last !== last_at)
      found.add(
        "T",
        `${name}: ${count} from ${text(at)} to ${text(last_at)}, but there are ${counted}.`,
      );
  }
  if (expected !== null && expected <= schedule.cursor_at)
    found.add("T", `${name}: ${text(expected)} is not recorded, but the cursor has passed.`);
}

/** With overlap "skip" or "queue" a run of a schedule begins only after the earlier ones have ended. */
export function judgeOverlaps(
  /** @type {History} */ { tables },
  /** @type {Map<string, RunFacts>} */ facts,
) {
  const found = new Finder();
  const ofSchedule = groupBy(facts.values(), ({ run }) => run.schedule);
  for (const { id, name, definition } of tables.schedules) {
    if (!["skip", "queue"].includes(JSON.parse(definition).overlap)) continue;
    const spans = (ofSchedule.get(id) ?? [])
      .filter(({ grants, outcome }) => grants.length > 0 && outcome)
      .map(({ run, grants, outcome }) => ({
        id: run.id,
        from: Math.min(...grants.map(({ started_at }) => started_at)),
        to: outcome?.finished_at,
      }))
      .sort((a, b) => a.from - b.from);
    spans.forEach((span, at) => {
      const before = spans[at - 1];
      // A start is stored as the end minus a rounded duration.
      if (before && span.from + 2 < before.to)
        found.add(
          "S15",
          `${name}: ${span.id} began ${before.to - span.from} ms before ${before.id} ended.`,
        );
    });
  }
  return found.all;
}

function text(/** @type {number} */ at) {
  return new Date(at).toISOString();
}
