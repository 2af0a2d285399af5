// That a seed is always the same, and that the checkers can fail: each of them is shown something broken.

import { expect, test } from "vitest";
import { runSeed, SOMETIMES, shrinkSeed } from "../../src/testing/simulator/index.js";

test("the same seed is the same sequence of events", async () => {
  for (const seed of [11, 12, 13]) {
    const { hash } = await runSeed(seed);
    expect((await runSeed(seed)).hash).toBe(hash);
    expect((await runSeed(seed, { isTold: true })).hash).toBe(hash);
  }
});

test("different seeds are different", async () => {
  expect((await runSeed(21)).hash).not.toBe((await runSeed(22)).hash);
});

test("every rare state has words", () => {
  for (const text of Object.values(SOMETIMES)) expect(text).toMatch(/^[a-z].{15,}/);
});

/** What is broken on purpose, in which transactions, and which promise that breaks. */
const BROKEN: readonly {
  readonly what: string;
  readonly verb: string;
  readonly sql: string;
  readonly promise: string;
}[] = [
  {
    what: "a held run is handed out again",
    verb: "exchange",
    sql: `insert into holdfast_ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
          select m.value, 0, k.lane, k.policy, k.attempt, 0, 0, 0, 0, 0 from holdfast_lease k, json_each(k.ids) m
          where m.value not in (select id from holdfast_ready) limit 1`,
    promise: "S16",
  },
  {
    what: "a poll extends a lease",
    verb: "poll",
    sql: "update holdfast_lease set until = until + 1000",
    promise: "S3",
  },
  {
    what: "a lease passes to somebody else",
    verb: "renew",
    sql: "update holdfast_lease set holder = holder + 1",
    promise: "S1",
  },
  {
    what: "a run is taken before its lease has run out",
    verb: "poll",
    sql: "delete from holdfast_lease where fence = (select min(fence) from holdfast_lease)",
    promise: "S2",
  },
  {
    what: "a run is forgotten",
    verb: "promote",
    sql: "delete from holdfast_run where id = (select max(id) from holdfast_run)",
    promise: "S11",
  },
  {
    what: "an ended run goes on",
    verb: "exchange",
    sql: "delete from holdfast_outcome where status = 1 and id = (select min(id) from holdfast_outcome where status = 1)",
    promise: "S8",
  },
  {
    what: "an attempt is not counted",
    verb: "exchange",
    sql: "update holdfast_ready set attempt = 0, extra = 9",
    promise: "S10",
  },
  {
    what: "the ledger forgets a fired tick",
    verb: "writeSchedules",
    sql: "delete from holdfast_tick where outcome = 0",
    promise: "S6",
  },
  {
    what: "the cursor goes back",
    verb: "writeSchedules",
    sql: "update holdfast_schedule set cursor_at = cursor_at - 600000",
    promise: "S5",
  },
  {
    what: "a tick is passed over",
    verb: "writeSchedules",
    sql: "update holdfast_schedule set cursor_at = cursor_at + 3600000 where paused_at is null",
    promise: "T",
  },
  {
    what: "a gate is opened while another run is live",
    verb: "poll",
    sql: `insert into holdfast_ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
          select id, wake_at, lane, policy, attempt, losses, refunds, laters, extra, suspect
          from holdfast_waiting where gate = 'schedule';
          delete from holdfast_waiting where gate = 'schedule'`,
    promise: "S15",
  },
  {
    what: "a limit lets one too many through",
    verb: "exchange",
    sql: `insert into holdfast_flow_run (run, flow, held)
          select id, flow, flow from holdfast_waiting where gate = 'flow' limit 1`,
    promise: "F",
  },
  {
    what: "what was held is not given back",
    verb: "reclaim",
    sql: "insert into holdfast_flow_run (run, flow, held) select 'nobody', id, id from holdfast_flow limit 1",
    promise: "F",
  },
  {
    what: "a window forgets its claims",
    verb: "exchange",
    sql: `delete from holdfast_flow_turn;
          update holdfast_flow set used = 0;
          update holdfast_flow_line set look_at = 0 where look_at is not null`,
    promise: "F",
  },
  {
    what: "a waiting run is never due",
    verb: "exchange",
    sql: "update holdfast_waiting set wake_at = wake_at + 864000000 where gate is null",
    promise: "L",
  },
];

test.for(BROKEN)("$what: $promise is seen to be broken", async ({ verb, sql, promise }) => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= 12 && !seen.has(promise); seed += 1) {
    const { violations } = await runSeed(seed, {
      tamper: (call, run) => {
        if (call.verb === verb) run(sql);
      },
    });
    for (const each of violations) seen.add(each.promise);
  }
  expect([...seen]).toContain(promise);
});

test("a broken seed is shrunk to few faults, and its story says what happened", async () => {
  // Broken only where a process stood still for longer than its lease: one fault is enough.
  const shrunk = await shrinkSeed(3, {
    triesMax: 60,
    tamper: ({ verb }, run) => {
      if (verb === "reclaim") run("update holdfast_ready set attempt = attempt + 5");
    },
  });
  expect(shrunk).not.toBeNull();
  expect(shrunk?.faultsLeft.length).toBeLessThan(8);
  expect(shrunk?.report.story.join("\n")).toMatch(/!!! S\d+: /);
});
