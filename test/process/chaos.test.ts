// A minute of real chaos: six processes on one database, killed, frozen, stopped and cut off by a
// seed, and afterwards a history in which nothing is lost, doubled or out of order.
// `npm run chaos` does the same for as long as it is told to.

import pg from "pg";
import { describe, expect, test } from "vitest";
import { type Report, runCampaign } from "../../chaos/campaign.mjs";
import { type History, judge } from "../../chaos/checks.mjs";
import { Network } from "../../chaos/proxy.mjs";
import { POSTGRES_URL } from "./worker-processes.js";

const SEED = 5;
const SECONDS = 25;
/** Healing and running dry have limits of their own, and a violation says which one was passed. */
const LIMIT_MS = 1_200_000;

/** Everything happened that a campaign is for; how much of it is the machine's affair. */
function expectChaos({ faults, counts, seen, operations }: Report): void {
  const { kills = 0 } = faults;
  expect(kills).toBeGreaterThan(0);
  expect(faults.longFreezes).toBeGreaterThan(0);
  expect(faults.stops).toBeGreaterThan(0);
  expect(seen.takeovers).toBeGreaterThan(0);
  expect(operations.answered).toBeGreaterThan(50);
  expect(counts.completed).toBeGreaterThan(50);
  expect(counts.looks).toBeGreaterThan(0);
  expect(counts.boots).toBeGreaterThan(kills);
}

async function campaignOn(database: "sqlite" | "postgres"): Promise<Report> {
  console.log(`chaos on ${database}: seed ${SEED}, ${SECONDS} s`);
  const report = await runCampaign({ database, seconds: SECONDS, seed: SEED });
  const { faults, seen, counts, operations } = report;
  console.log(JSON.stringify({ database, faults, seen, counts, operations }));
  return report;
}

test(
  "processes on one SQLite file are killed, frozen and stopped: the history keeps every promise",
  async () => {
    const report = await campaignOn("sqlite");
    expect(report.violations).toEqual([]);
    expectChaos(report);
  },
  LIMIT_MS,
);

describe.skipIf(POSTGRES_URL === undefined)("with a server of its own", () => {
  test("the network cuts a commit after the server has done it and before the client gets the reply", async () => {
    const url = new URL(POSTGRES_URL ?? "");
    const network = await new Network(Number(url.port)).listen();
    const connect = async (port: number) => {
      const client = new pg.Client({
        connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`,
      });
      client.on("error", () => undefined);
      await client.connect();
      return client;
    };
    const direct = await connect(Number(url.port));
    const table = `chaos_${process.pid}`;
    await direct.query(`create table ${table} (n int)`);
    try {
      network.cutsToCome = 1;
      const alone = await connect(network.port);
      expect((await alone.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
      await expect(alone.query(`insert into ${table} values ($1)`, [1])).rejects.toThrow();
      network.cutsToCome = 1;
      const together = await connect(network.port);
      await together.query("begin");
      await together.query(`insert into ${table} values ($1)`, [2]);
      await expect(together.query("commit")).rejects.toThrow();
      const { rows } = await direct.query(`select n from ${table} order by n`);
      expect(rows).toEqual([{ n: 1 }, { n: 2 }]);
      expect(network.cutsDone).toBe(2);
    } finally {
      await direct.query(`drop table ${table}`);
      await direct.end();
      await network.close();
    }
  });

  test(
    "processes on one PostgreSQL are killed, frozen, stopped and cut off, and the server crashes: the same",
    async () => {
      const report = await campaignOn("postgres");
      expect(report.violations).toEqual([]);
      expectChaos(report);
      expect(report.faults.cuts).toBeGreaterThan(0);
      expect(report.faults.commitCuts).toBeGreaterThan(0);
      expect(report.faults.crashes).toBeGreaterThan(0);
    },
    LIMIT_MS,
  );
});

describe("the judge", () => {
  test("has nothing against a sound history", () => {
    expect(judge(soundHistory())).toEqual([]);
  });

  test.each<[what: string, check: string, spoil: (history: Sound) => void]>([
    ["an acknowledged run that is gone", "S11", ({ tables }) => tables.runs.shift()],
    [
      "a batch in part",
      "S11",
      ({ operations }) => Object.assign(operations[0], { is: "unknown", verb: "many", count: 2 }),
    ],
    [
      "a refused enqueue that happened",
      "S11",
      ({ operations }) =>
        Object.assign(operations[0], { is: "refused", code: "STORE_UNAVAILABLE" }),
    ],
    [
      "two runs of one key",
      "S12",
      ({ tables }) => tables.runs.push({ ...tables.runs[1], id: "again" }),
    ],
    [
      "a conflict with itself",
      "S12",
      ({ operations }) =>
        Object.assign(operations[1], { is: "refused", code: "KEY_CONFLICT", runId: "keyed" }),
    ],
    ["two outcomes of one run", "S16", ({ tables }) => tables.outcomes.push(tables.outcomes[0])],
    ["a run that never ended", "L", ({ tables }) => tables.ready.push({ id: "plain" })],
    [
      "an end under a fence that was taken",
      "S3",
      ({ tables }) => Object.assign(tables.outcomes[0], { fence: 1 }),
    ],
    [
      "the result of another fence",
      "S3",
      ({ tables }) => Object.assign(tables.outcomes[0], { result: resultOf("plain", 1, 1) }),
    ],
    [
      "an attempt beyond the limit",
      "S10",
      ({ tables }) => Object.assign(tables.runs[0], { attempts: 1 }),
    ],
    [
      "an attempt that was not counted",
      "S10",
      ({ tables }) => Object.assign(tables.attempts[0], { ended: 0, attempt: 2 }),
    ],
    [
      "a failure without a reason",
      "S10",
      ({ tables }) => Object.assign(tables.outcomes[2], { status: 2, error: "{}" }),
    ],
    ["an effect twice under one fence", "E", ({ effects }) => effects.push(effects[0])],
    [
      "an effect under a fence that nobody had",
      "S3",
      ({ effects }) => effects.push({ ...effects[0], fence: 9 }),
    ],
    [
      "fenced work that was done twice",
      "S9",
      ({ tables }) => tables.ledger.push({ run: "paid", fence: 4, attempt: 1 }),
    ],
    ["fenced work that is gone", "S9", ({ tables }) => tables.ledger.pop()],
    ["a fence with two holders", "S1", ({ effects }) => Object.assign(effects[2], { pid: 12 })],
    ["a completed run that did nothing", "E", ({ effects }) => effects.splice(2, 1)],
    [
      "a tick with two runs",
      "S4",
      ({ tables }) => tables.runs.push({ ...tables.runs[3], id: "twin" }),
    ],
    [
      "a fired tick without its run",
      "S6",
      ({ tables }) => Object.assign(tables.ticks[1], { run: null }),
    ],
    ["a tick that is left out", "T", ({ tables }) => tables.ticks.shift()],
    [
      "a tick that is no tick",
      "T",
      ({ tables }) => Object.assign(tables.ticks[0], { at: 999, last_at: 999 }),
    ],
    [
      "a cursor that passed a tick",
      "T",
      ({ tables }) => Object.assign(tables.schedules[0], { cursor_at: 3_000 }),
    ],
    [
      "two runs of one schedule at the same time",
      "S15",
      ({ tables }) => {
        tables.runs.push({ ...tables.runs[3], id: "beside", mode: 2, nominal_at: null });
        tables.outcomes.push({
          ...tables.outcomes[2],
          id: "beside",
          started_at: 2_050,
          result: resultOf("beside", 4, 1),
        });
      },
    ],
    ["a run that nobody asked for", "S13", ({ operations }) => operations.shift()],
    [
      "a step that was done again after it was stored",
      "W",
      ({ effects }) =>
        effects.push({ what: "step:first", run: "tour", fence: 7, attempt: 1, pid: 11 }),
    ],
    [
      "a step that is stored without having been done",
      "W",
      ({ tables }) => Object.assign(tables.steps[2], { fence: 6, value: "6" }),
    ],
    [
      "a step that was received as another",
      "W",
      ({ tables }) =>
        Object.assign(tables.outcomes[4], { result: resultOf("tour", 7, 1, { first: 9 }) }),
    ],
    [
      "a call with two runs",
      "W",
      ({ tables }) => tables.runs.push({ ...tables.runs[5], id: "twin" }),
    ],
    ["an acknowledged signal that is gone", "W", ({ tables }) => tables.signals.pop()],
    [
      "a timeout although a signal came in time",
      "W",
      ({ tables }) => Object.assign(tables.steps[1], { value: null }),
    ],
  ])("finds %s (%s)", (_, check, spoil) => {
    const history = soundHistory();
    spoil(history);
    expect(judge(history).map((violation) => violation.check)).toContain(check);
  });
});

// biome-ignore lint/suspicious/noExplicitAny: rows are spoilt in ways that no type foresees
type Rows = any[];
type Sound = Omit<History, "tables" | "operations" | "effects"> & {
  tables: Record<keyof History["tables"], Rows>;
  operations: Rows;
  effects: Rows;
};

function resultOf(run: string, fence: number, attempt: number, steps?: object): string {
  return JSON.stringify({ run, fence, attempt, steps });
}

/** A run that was lost once, one with a key, one of a schedule that ticks each second, one that waited and called another. */
function soundHistory(): Sound {
  const run = {
    job: "quick",
    mode: 0,
    schedule: null,
    nominal_at: null,
    key: null,
    parent: null,
    attempts: 3,
    on_lost: 0,
  };
  const outcome = {
    started_at: 2_010,
    finished_at: 2_100,
    holder: 1,
    attempt: 1,
    extra: 0,
    status: 1,
    error: null,
  };
  const tick = { schedule: 1, count: 1, reason: 0 };
  const effects = [
    { run: "plain", fence: 1, attempt: 1, pid: 12 },
    { run: "plain", fence: 2, attempt: 2, pid: 11 },
    { run: "keyed", fence: 3, attempt: 1, pid: 11 },
    { run: "ticked", fence: 4, attempt: 1, pid: 11 },
    { run: "paid", fence: 5, attempt: 1, pid: 11 },
    { run: "tour", fence: 6, attempt: 1, pid: 11 },
    { run: "tour", fence: 7, attempt: 1, pid: 11 },
    { run: "called", fence: 8, attempt: 1, pid: 11 },
  ];
  const steps = { first: 6, beside: 7, last: 7, got: "a-4" };
  const step = { run: "tour", child: null, ended_at: 2_050 };
  return {
    tables: {
      runs: [
        { ...run, id: "plain", input: '{"op":"a-0"}' },
        { ...run, id: "keyed", key: "k", input: '{"key":"k","variant":0}' },
        { ...run, id: "paid", job: "ledger", input: '{"op":"a-2"}' },
        { ...run, id: "ticked", mode: 1, schedule: 1, nominal_at: 2_000, input: "{}" },
        { ...run, id: "tour", job: "journey", input: '{"op":"a-3"}' },
        { ...run, id: "called", parent: "tour", input: '{"caller":"tour"}' },
      ],
      ready: [],
      waiting: [],
      leases: [],
      outcomes: [
        { ...outcome, id: "plain", fence: 2, attempt: 2, result: resultOf("plain", 2, 2) },
        { ...outcome, id: "keyed", fence: 3, result: resultOf("keyed", 3, 1) },
        { ...outcome, id: "ticked", fence: 4, result: resultOf("ticked", 4, 1) },
        { ...outcome, id: "paid", fence: 5, result: resultOf("paid", 5, 1) },
        { ...outcome, id: "tour", fence: 7, result: resultOf("tour", 7, 1, steps) },
        { ...outcome, id: "called", fence: 8, result: resultOf("called", 8, 1) },
      ],
      attempts: [
        // It was suspended.
        {
          ...{ run: "tour", fence: 6, attempt: 1, ended: 6, holder: 1 },
          ...{ started_at: 1_000, ended_at: 1_500 },
        },
        {
          run: "plain",
          fence: 1,
          attempt: 1,
          ended: 1,
          holder: 2,
          started_at: 1_000,
          ended_at: 2_000,
        },
      ],
      keys: [{ job: "quick", key: "k", run: "keyed" }],
      schedules: [
        {
          id: 1,
          name: "each",
          definition: JSON.stringify({ overlap: "skip", when: { kind: "grid" } }),
          anchor_at: 0,
          cursor_at: 2_500,
          broken_at: null,
        },
      ],
      ticks: [
        { ...tick, at: 1_000, last_at: 1_000, outcome: 1, run: null },
        { ...tick, at: 2_000, last_at: 2_000, outcome: 0, run: "ticked" },
      ],
      instances: [
        { no: 1, id: "host:11:boot" },
        { no: 2, id: "host:12:boot" },
      ],
      ledger: [{ run: "paid", fence: 5, attempt: 1 }],
      steps: [
        { ...step, no: 1, name: "first", fence: 6, value: "6" },
        { ...step, no: 2, name: "go", fence: 7, value: '{"value":"a-4","at":2000}' },
        { ...step, no: 3, name: "beside", fence: 7, value: "7" },
        { ...step, no: 4, name: "called", fence: 7, value: "{}", child: "called" },
        { ...step, no: 5, name: "last", fence: 7, value: "7" },
      ],
      signals: [{ name: "go", key: "tour", value: '"a-4"', at: 2_000 }],
    },
    operations: [
      { op: "a-0", verb: "enqueue", is: "answered", job: "quick", answer: { id: "plain" } },
      {
        op: "a-1",
        verb: "keyed",
        is: "answered",
        job: "quick",
        key: "k",
        variant: 0,
        answer: { id: "keyed" },
      },
      { op: "a-2", verb: "enqueue", is: "answered", job: "ledger", answer: { id: "paid" } },
      { op: "a-3", verb: "enqueue", is: "answered", job: "journey", answer: { id: "tour" } },
      { op: "a-4", verb: "signal", is: "answered", key: "tour", answer: { repeated: false } },
    ],
    effects: effects.flatMap((effect) => [
      { ...effect, what: "begin" },
      ...(effect.fence === 6 ? [{ ...effect, what: "step:first" }] : []),
      ...(effect.fence === 7
        ? ["step:beside", "step:last"].map((what) => ({ ...effect, what }))
        : []),
      ...([1, 6].includes(effect.fence) ? [] : [{ ...effect, what: "done" }]),
    ]),
    makeWhen: () => ({ next: (afterMs) => (Math.floor(afterMs / 1_000) + 1) * 1_000 }),
  };
}
