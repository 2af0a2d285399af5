// Proves that a seed is always the same, and that the checkers can fail: each of them gets something broken.

import { expect, test } from "vitest";
import { runSeed, shrinkSeed } from "../../src/testing/simulator/index.js";

test("the same seed is the same sequence of events", async () => {
  for (const seed of [11, 12, 13]) {
    const { hash } = await runSeed(seed);
    expect((await runSeed(seed)).hash).toBe(hash);
    expect((await runSeed(seed, { hasStory: true })).hash).toBe(hash);
  }
});

test("different seeds are different", async () => {
  expect((await runSeed(21)).hash).not.toBe((await runSeed(22)).hash);
});

/** The deliberate damage: what is broken, in which transactions, and which promise that breaks. */
const BROKEN: readonly {
  readonly what: string;
  readonly verb: string;
  readonly sql: string;
  readonly promise: string;
}[] = [
  {
    what: "a held run is handed out again",
    verb: "claims.exchange",
    sql: `insert into holdfast_ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
          select m.value, 0, k.lane, k.policy, k.attempt, 0, 0, 0, 0, 0 from holdfast_lease k, json_each(k.ids) m
          where m.value not in (select id from holdfast_ready) limit 1`,
    promise: "S16",
  },
  {
    what: "a poll extends a lease",
    verb: "work.poll",
    sql: "update holdfast_lease set until = until + 1000",
    promise: "S3",
  },
  {
    what: "a lease passes to somebody else",
    verb: "leases.renew",
    sql: "update holdfast_lease set holder = holder + 1",
    promise: "S1",
  },
  {
    what: "a run is taken before its lease has run out",
    verb: "work.poll",
    sql: "delete from holdfast_lease where fence = (select min(fence) from holdfast_lease)",
    promise: "S2",
  },
  {
    what: "a run is forgotten",
    verb: "work.promote",
    sql: "delete from holdfast_run where id = (select max(id) from holdfast_run)",
    promise: "S11",
  },
  {
    what: "an ended run goes on",
    verb: "claims.exchange",
    sql: "delete from holdfast_outcome where status = 1 and id = (select min(id) from holdfast_outcome where status = 1)",
    promise: "S8",
  },
  {
    what: "an end is changed afterwards",
    verb: "work.poll",
    sql: "update holdfast_outcome set status = 2 where status = 1",
    promise: "S8",
  },
  {
    what: "a check-in is kept twice",
    verb: "schedules.write",
    sql: `insert or ignore into holdfast_run (id, created_at, due_at, lane, policy, version, priority, mode, schedule, input)
          select id || '+', created_at, due_at, lane, policy, version, priority, 0, schedule, input from holdfast_run
          where schedule = (select id from holdfast_schedule where name = 'watched')`,
    promise: "S13",
  },
  {
    what: "a check-in is not waited for",
    verb: "schedules.write",
    sql: `insert into holdfast_tick (schedule, at, last_at, count, outcome, reason, recorded_at, version)
          select id, anchor_at + every, anchor_at + every, 1, 2, 12, 0, version
          from (select *, definition ->> '$.when.everyMs' as every from holdfast_schedule)
          where name = 'watched' and version = 1 and cursor_at = anchor_at;
          update holdfast_schedule set cursor_at = cursor_at + (definition ->> '$.when.everyMs')
          where name = 'watched' and version = 1 and cursor_at = anchor_at`,
    promise: "T",
  },
  {
    what: "an attempt is not counted",
    verb: "claims.exchange",
    sql: "update holdfast_ready set attempt = 0, extra = 9",
    promise: "S10",
  },
  {
    what: "a stranger tells how far a run is",
    verb: "work.poll",
    sql: "update holdfast_progress set fence = fence - 1",
    promise: "S3",
  },
  {
    what: "a log line is added to a run that has ended",
    verb: "work.poll",
    sql: `insert or ignore into holdfast_log (run, fence, no, attempt, at, level, message)
          select id, fence, 999, attempt, 0, 1, 'late' from holdfast_outcome where fence is not null`,
    promise: "S3",
  },
  {
    what: "the ledger forgets a fired tick",
    verb: "schedules.write",
    sql: "delete from holdfast_tick where outcome = 0",
    promise: "S6",
  },
  {
    what: "the cursor goes back",
    verb: "schedules.write",
    sql: "update holdfast_schedule set cursor_at = cursor_at - 600000",
    promise: "S5",
  },
  {
    what: "a tick is passed over",
    verb: "schedules.write",
    sql: "update holdfast_schedule set cursor_at = cursor_at + 3600000 where paused_at is null",
    promise: "T",
  },
  {
    what: "a gate is opened while another run is live",
    verb: "work.poll",
    sql: `insert into holdfast_ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
          select id, wake_at, lane, policy, attempt, losses, refunds, laters, extra, suspect
          from holdfast_waiting where gate = 'schedule';
          delete from holdfast_waiting where gate = 'schedule'`,
    promise: "S15",
  },
  {
    what: "a lock is granted while another holds it",
    verb: "locks.acquire",
    sql: `delete from holdfast_lock where fence < (select max(fence) from holdfast_lock);
          update holdfast_lock set until = until - 60000`,
    promise: "S3",
  },
  {
    what: "a lock is taken before its lease has run out",
    verb: "locks.extend",
    sql: `insert into holdfast_lock_history (fence, name, holder, state, acquired_at, until, ended_at)
          select fence, name, holder, 2, acquired_at, until, until from holdfast_lock;
          delete from holdfast_lock`,
    promise: "S2",
  },
  {
    what: "a fence of a lock is granted again",
    verb: "locks.release",
    sql: "update sqlite_sequence set seq = 0 where name = 'holdfast_lock'",
    promise: "S1",
  },
  {
    what: "a commit completes a run without its effect",
    verb: "commits.run",
    sql: "delete from user_commit",
    promise: "E",
  },
  {
    what: "an item is done twice",
    verb: "commits.item",
    sql: "insert into user_item select * from user_item",
    promise: "S9",
  },
  {
    what: "items are not counted",
    verb: "items.store",
    sql: "update holdfast_item_count set items = items + 1",
    promise: "S9",
  },
  {
    what: "the end of a child is not counted",
    verb: "claims.exchange",
    sql: "update holdfast_batch set unended = unended + 1, completed = completed - 1 where completed > 0",
    promise: "B",
  },
  {
    what: "a run that another one made is forgotten by its batch",
    verb: "batches.enqueue",
    sql: "update holdfast_batch set scheduled = scheduled + 1",
    promise: "B",
  },
  {
    what: "a limit lets one too many through",
    verb: "claims.exchange",
    sql: `insert into holdfast_flow_run (run, flow, held)
          select id, flow, flow from holdfast_waiting where gate = 'flow' limit 1`,
    promise: "F",
  },
  {
    what: "what was held is not given back",
    verb: "leases.reclaim",
    sql: "insert into holdfast_flow_run (run, flow, held) select 'nobody', id, id from holdfast_flow limit 1",
    promise: "F",
  },
  {
    what: "a window forgets its claims",
    verb: "claims.exchange",
    sql: `delete from holdfast_flow_turn;
          update holdfast_flow set used = 0;
          update holdfast_flow_line set look_at = 0 where look_at is not null`,
    promise: "F",
  },
  {
    what: "a pause of everything is forgotten",
    verb: "work.poll",
    sql: "delete from holdfast_pause where until_at is null",
    promise: "S14",
  },
  {
    what: "a stored step is changed",
    verb: "work.poll",
    sql: "update holdfast_step set value = '0' where kind = 0",
    promise: "W",
  },
  {
    what: "an end of a sleep is forgotten",
    verb: "steps.suspend",
    sql: "delete from holdfast_step where kind = 1",
    promise: "W",
  },
  {
    what: "the deadline of a wait moves",
    verb: "work.poll",
    sql: "update holdfast_wait set until = until + 1000 where kind = 1",
    promise: "W",
  },
  {
    what: "a run sleeps beyond its first deadline",
    verb: "steps.suspend",
    sql: "update holdfast_waiting set wake_at = wake_at + 864000000 where asleep_at is not null and wake_at < 200000000000000",
    promise: "W",
  },
  {
    what: "a signal is lost before anybody has received it",
    verb: "signals.send",
    sql: "delete from holdfast_signal",
    promise: "W",
  },
  {
    what: "a wake-up is lost",
    verb: "claims.exchange",
    sql: "delete from holdfast_wake",
    promise: "W",
  },
  {
    what: "a run that has ended keeps its waits",
    verb: "signals.forgetEnded",
    sql: "insert into holdfast_wait (run, name, kind, generation, fence, since, until) select id, 'left', 1, 0, fence, 0, 1 from holdfast_outcome where fence is not null limit 1; delete from holdfast_wake",
    promise: "W",
  },
  {
    what: "a step is stored by a stranger",
    verb: "steps.finish",
    sql: "insert into holdfast_step (run, no, name, kind, generation, fence, tries, started_at, ended_at, value) select run, no + 1000, name || '+', 0, 0, fence - 1, 1, 0, 0, '0' from holdfast_step limit 1",
    promise: "S3",
  },
  {
    what: "a waiting run is never due",
    verb: "claims.exchange",
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
      if (verb === "leases.reclaim") run("update holdfast_ready set attempt = attempt + 5");
    },
  });
  expect(shrunk).not.toBeNull();
  expect(shrunk?.faultsLeft.length).toBeLessThan(8);
  expect(shrunk?.report.story.join("\n")).toMatch(/!!! S\d+: /);
});
