// Reads the tables without the library: whole tables for the checks at the end, and invariants that are queried again
// and again during the faults.

import pg from "pg";
import { LEDGER } from "./jobs.mjs";

/** @typedef {Record<string, any>} Row */
/** @typedef {{ all: (sql: string) => Promise<Row[]>, close: () => Promise<void> }} Reader */

/**
 * @typedef {object} Tables
 * @property {Row[]} runs
 * @property {Row[]} ready
 * @property {Row[]} waiting
 * @property {Row[]} leases
 * @property {Row[]} outcomes
 * @property {Row[]} attempts
 * @property {Row[]} keys
 * @property {Row[]} schedules
 * @property {Row[]} ticks
 * @property {Row[]} instances
 * @property {Row[]} steps
 * @property {Row[]} signals
 * @property {Row[]} ledger the rows that the job `ledger` wrote in the commits of its runs
 */

/**
 * @param {string} url
 * @returns {Promise<Reader>}
 */
export async function openReader(url) {
  if (url.startsWith("sqlite:")) {
    const { DatabaseSync } = await import("@photostructure/sqlite");
    const handle = new DatabaseSync(url.slice("sqlite:".length), { readOnly: true });
    handle.exec("pragma busy_timeout = 1000");
    return {
      all: async (sql) => /** @type {Row[]} */ (handle.prepare(named(sql, "holdfast_")).all()),
      close: async () => handle.close(),
    };
  }
  let client = await connected(url);
  const ask = async (/** @type {string} */ sql) =>
    (await client.query(named(sql, "holdfast."))).rows;
  return {
    // A fault may have ended this session meanwhile.
    all: (sql) =>
      ask(sql).catch(async () => {
        await client.end().catch(() => undefined);
        client = await connected(url);
        return ask(sql);
      }),
    close: () => client.end().catch(() => undefined),
  };
}

/** @param {string} url */
async function connected(url) {
  const client = new pg.Client({ connectionString: url, application_name: "chaos" });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** @param {string} sql @param {string} prefix */
function named(sql, prefix) {
  return sql.replaceAll(/\{(\w+)\}/g, (_, table) => `${prefix}${table}`);
}

export const RUNS = `select r.id, r.parent, l.job, r.mode, r.schedule, r.nominal_at, r.key, r.input, r.created_at, p.attempts, p.on_lost
     from {run} r join {lane} l on l.id = r.lane join {policy} p on p.id = r.policy`;
export const OUTCOME_COLUMNS =
  "id, fence, started_at, finished_at, holder, attempt, extra, status, result, error";
export const ATTEMPTS =
  "select run, fence, attempt, ended, holder, started_at, ended_at from {attempt}";
export const INSTANCES = "select no, id from {instance}";

/**
 * @param {Reader} reader
 * @returns {Promise<Tables>}
 */
export async function readTables(reader) {
  const questions = [
    RUNS,
    "select id from {ready}",
    "select id, gate from {waiting}",
    "select fence, ids from {lease}",
    `select ${OUTCOME_COLUMNS} from {outcome}`,
    `${ATTEMPTS} order by run, fence`,
    "select job, key, run, expires_at from {key}",
    `select id, name, definition, anchor_at, cursor_at, next_at, created_at, paused_at, broken_at
     from {schedule} order by id`,
    "select schedule, at, last_at, count, outcome, reason, recorded_at, run from {tick} order by schedule, at",
    INSTANCES,
    `select run, fence, attempt from ${LEDGER}`,
    "select run, no, name, fence, child, value, ended_at from {step} order by run, no",
    "select name, key, value, at from {signal}",
  ];
  const answers = [];
  for (const sql of questions) answers.push((await reader.all(sql)).map(plain));
  const [runs, ready, waiting, leases, outcomes, attempts, keys, schedules, ticks, ...others] =
    /** @type {[Row[], Row[], Row[], Row[], Row[], Row[], Row[], Row[], Row[], ...Row[][]]} */ (
      answers
    );
  const [instances, ledger, steps, signals] = /** @type {[Row[], Row[], Row[], Row[]]} */ (others);
  return {
    ...{ runs, ready, waiting, leases, outcomes, attempts, keys, schedules, ticks },
    ...{ instances, ledger, steps, signals },
  };
}

const NUMBERS =
  /_at$|^(at|fence|schedule|no|mode|count|attempts?|ended|status|holder|extra|outcome|reason)$/;

/** PostgreSQL sends large whole numbers as text. */
export function plain(/** @type {Row} */ row) {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value !== null && NUMBERS.test(name) ? Number(value) : value,
    ]),
  );
}

/**
 * Describes the remaining work.
 * @param {Reader} reader
 * @returns {Promise<string[]>}
 */
export async function liveRuns(reader) {
  const rows = await reader.all(
    `select 'ready' as place, l.job, y.attempt, null as at, null as gate, y.losses
       from {ready} y join {lane} l on l.id = y.lane
     union all select 'waiting', l.job, w.attempt, w.wake_at, w.gate, w.losses
       from {waiting} w join {lane} l on l.id = w.lane
     union all select 'held', l.job, h.attempt, h.until, cast(h.cancels as text), h.losses
       from {lease} h join {lane} l on l.id = h.lane`,
  );
  return rows.map(({ place, job, attempt, at, gate, losses }) =>
    [
      `${job} ${place}`,
      `attempt ${attempt}, lost ${losses} times`,
      ...(at === null ? [] : [`for ${Number(at) - Date.now()} ms`]),
      ...(gate === null ? [] : [String(gate)]),
    ].join(", "),
  );
}

/** @param {Reader} reader @param {number} atMs @returns {Promise<string[]>} */
export async function schedulesBehind(reader, atMs) {
  const rows = await reader.all(
    `select name from {schedule} where cursor_at <= ${atMs} order by name`,
  );
  return rows.map(({ name }) => String(name));
}

/**
 * Checks the invariants that hold at any moment; each query is one statement and thus sees one moment.
 * @param {Reader} reader
 * @param {"sqlite" | "postgres"} database
 * @returns {Promise<{ check: string, message: string }[]>}
 */
export async function lookAtTables(reader, database) {
  const held =
    database === "sqlite"
      ? "select m.value as id from {lease} h, json_each(h.ids) m"
      : "select unnest(h.ids) as id from {lease} h";
  /** @type {[check: string, meaning: string, sql: string][]} */
  const questions = [
    [
      "S16",
      "is not in exactly one of the tables",
      `with place as (select id from {ready} union all select id from {waiting}
         union all ${held} union all select id from {outcome})
       select r.id as what from {run} r left join place p on p.id = r.id
       group by r.id having count(p.id) <> 1 limit 3`,
    ],
    [
      "S4",
      "is a tick with two scheduled runs",
      `select cast(schedule as text) || ' ' || cast(nominal_at as text) as what from {run} where mode = 1
       group by schedule, nominal_at having count(*) > 1 limit 3`,
    ],
    [
      "S6",
      "is a tick whose row and run do not fit together",
      `select cast(t.schedule as text) || ' ' || cast(t.at as text) as what from {tick} t
       left join {run} r on r.id = t.run
       where (t.outcome = 0) <> (t.run is not null) or (t.run is not null
         and (r.id is null or r.mode <> 1 or r.schedule <> t.schedule or r.nominal_at <> t.at)) limit 3`,
    ],
    [
      "S6",
      "is a scheduled run without a tick",
      `select r.id as what from {run} r where r.mode = 1 and not exists (select 1 from {tick} t
         where t.schedule = r.schedule and t.at = r.nominal_at and t.run = r.id) limit 3`,
    ],
    [
      "S15",
      "is a schedule with two runs that may run at the same time",
      `with place as (select id from {ready} union all select id from {waiting} where gate is null
         union all ${held})
       select s.name as what from {schedule} s join {run} r on r.schedule = s.id join place p on p.id = r.id
       where s.definition like '%"overlap":"skip"%' or s.definition like '%"overlap":"queue"%'
       group by s.name having count(*) > 1 limit 3`,
    ],
    [
      "W",
      "sleeps, and waits for nothing",
      `select w.id as what from {waiting} w where w.asleep_at is not null
         and not exists (select 1 from {wait} o where o.run = w.id) limit 3`,
    ],
    [
      "W",
      "sleeps beyond its first deadline",
      `select w.id as what from {waiting} w where w.asleep_at is not null and w.wake_at > w.asleep_at
         and w.wake_at > (select min(o.until) from {wait} o where o.run = w.id) limit 3`,
    ],
    [
      "S5",
      "is a tick beyond the cursor of its schedule",
      `select cast(t.schedule as text) || ' ' || cast(t.at as text) as what from {tick} t
       join {schedule} s on s.id = t.schedule where t.last_at > s.cursor_at or t.last_at < t.at limit 3`,
    ],
  ];
  const found = [];
  for (const [check, meaning, sql] of questions) {
    for (const { what } of await reader.all(sql))
      found.push({ check, message: `${what} ${meaning}` });
  }
  return found;
}
