// Every check finds the damage that it is for, and no other check does; `repair` repairs once where a rule can, and
// gives advice otherwise. The damage is made on purpose, directly in the tables.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CHECKS } from "../../src/store/checks/check-statements.js";
import { Door, type EnginePlace, type Member, World } from "./world.js";

const NOBODY = "00000000-0000-7000-8000-000000000000";
const YES = "(1 = 1)";
const NO = "(1 = 0)";

/** The runs that plants need, by what they are. */
type Facts = Readonly<
  Record<"waiting" | "ready" | "held" | "done" | "failed" | "fired" | Sleeper, string>
>;
/** Each is damaged once: a repair wakes it, and it goes on. */
type Sleeper = "napping" | "dreaming" | "listening" | "hearing" | "calling" | "ringing";

type Plant = {
  readonly check: string;
  /** Says what differs where a check has several. */
  readonly how?: string;
  readonly sql: (facts: Facts, engine: "sqlite" | "postgres") => string;
  /** Takes it back where nothing mends it. */
  readonly undo?: (facts: Facts) => string;
  /** A scheduler that polls finishes what the repair began. */
  readonly byScheduler?: true;
};

const LEASE =
  "until, deadline_at, claimed_at, renewed_at, holder, lane, policy, attempt, losses, refunds, laters, extra, suspect, token, started";
const WAITING = "wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect";
const nowhere = (sql: string) => `(select id from {schedule} where name = '${sql}')`;

const PLANTS: readonly Plant[] = [
  {
    check: "a run is in exactly one place",
    how: "it is nowhere",
    sql: ({ waiting }) => `delete from {waiting} where id = '${waiting}'`,
  },
  {
    check: "a run is in exactly one place",
    how: "it is in two",
    sql: ({ held }) =>
      `insert into {waiting} (id, ${WAITING}) select id, due_at, lane, policy, priority, 0, 0, 0, 0, 0, ${NO} from {run} where id = '${held}'`,
  },
  {
    check: "a run is in exactly one place",
    how: "it is held and has ended",
    sql: ({ done }, engine) =>
      `insert into {lease} (${LEASE}, ids)
       select until, deadline_at, claimed_at, renewed_at, holder, (select lane from {run} where id = '${done}'),
         (select policy from {run} where id = '${done}'), 1, 0, 0, 0, 0, ${NO}, token, started,
         ${engine === "sqlite" ? `json_array('${done}')` : `array['${done}'::uuid]`} from {lease} limit 1`,
  },
  {
    check: "every pending or held row has its run",
    sql: ({ ready }) =>
      `insert into {waiting} (id, ${WAITING}) select '${NOBODY}', sort_at, lane, policy, 0, 0, 0, 0, 0, 0, ${NO} from {ready} where id = '${ready}'`,
  },
  {
    check: "a pending or held row agrees with its run",
    sql: ({ ready }) =>
      `update {ready} set lane = (select max(id) from {lane} where job = 'unused') where id = '${ready}'`,
  },
  {
    check: "a lease has runs",
    sql: (_, engine) =>
      `insert into {lease} (${LEASE}, ids) select ${LEASE}, ${engine === "sqlite" ? "'[]'" : "'{}'"} from {lease} limit 1`,
  },
  {
    check: "a lease has a holder",
    sql: () => "update {lease} set holder = 9999 where fence = (select max(fence) from {lease})",
  },
  {
    check: "a fence has one holder",
    sql: ({ failed, done }) =>
      `insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at)
       select '${failed}', o.fence, 1, 0, 9999, 0, 0 from {outcome} o where o.id = '${done}'`,
    undo: () => "delete from {attempt} where holder = 9999",
  },
  {
    check: "a later grant has the larger fence",
    sql: ({ done }) =>
      `insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at)
       select o.id, o.fence, 1, 0, o.holder, 0, 0 from {outcome} o where o.id = '${done}'`,
    undo: ({ done }) => `delete from {attempt} where run = '${done}'`,
  },
  {
    check: "fences come from their sequence",
    how: "of runs",
    sql: (_, engine) =>
      engine === "sqlite"
        ? "update sqlite_sequence set seq = 1 where name = '{lease}'"
        : "select setval('{lease_fence_seq}', 1)",
  },
  {
    check: "fences come from their sequence",
    how: "of locks",
    sql: (_, engine) =>
      engine === "sqlite"
        ? "update sqlite_sequence set seq = 1 where name = '{lock}'"
        : "select setval('{lock_fence}', 1)",
  },
  {
    check: "fences come from their sequence",
    how: "of steps",
    sql: ({ done }) =>
      `insert into {step} (run, no, name, kind, generation, fence, tries, started_at, ended_at)
       values ('${done}', 1, 'a', 0, 0, 999999, 1, 0, 0)`,
  },
  {
    check: "attempts stay within their limit",
    sql: ({ ready }) => `update {ready} set attempt = 99 where id = '${ready}'`,
  },
  {
    check: "a key names a run of its job",
    sql: () =>
      `insert into {key} (job, key, run, input_hash) values ('plain', 'lost', '${NOBODY}', 'x')`,
  },
  { check: "roll-ups count every end", sql: () => "delete from {rollup}" },
  {
    check: "a tick has at most one scheduled run",
    sql: ({ fired }) =>
      `insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, input)
       select '${NOBODY}', created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, input
       from {run} where id = '${fired}';
       insert into {outcome} (id, finished_at, lane, attempt, extra, status)
       select '${NOBODY}', finished_at, lane, 0, 0, 3 from {outcome} where id = '${fired}'`,
    undo: () =>
      `delete from {run} where id = '${NOBODY}'; delete from {outcome} where id = '${NOBODY}'`,
  },
  {
    check: "a tick and its run agree",
    sql: ({ fired }) => `update {tick} set outcome = 1, reason = 4 where run = '${fired}'`,
    undo: ({ fired }) => `update {tick} set outcome = 0, reason = 0 where run = '${fired}'`,
  },
  {
    check: "a tick has an outcome and a reason of it",
    sql: ({ fired }) => `update {tick} set reason = 8 where run = '${fired}'`,
    undo: ({ fired }) => `update {tick} set reason = 0 where run = '${fired}'`,
  },
  {
    check: "a scheduled run has its tick",
    sql: ({ fired }) => `delete from {tick} where run = '${fired}'`,
  },
  {
    check: "no tick is recorded twice",
    sql: () => `update {tick} set last_at = at + 60000 where schedule = ${nowhere("minutely")}
      and at = (select min(at) from {tick} where schedule = ${nowhere("minutely")})`,
    undo: () => "update {tick} set last_at = at",
  },
  {
    check: "no ledger is ahead of its cursor",
    sql: () => "update {schedule} set cursor_at = cursor_at - 60000 where name = 'minutely'",
  },
  {
    check: "the next tick is after the cursor",
    sql: () => "update {schedule} set next_at = cursor_at where name = 'minutely'",
    byScheduler: true,
  },
  {
    check: "an active schedule has a next tick",
    sql: () => "update {schedule} set next_at = null where name = 'minutely'",
    byScheduler: true,
  },
  {
    check: "a schedule that does not fire has no next tick",
    sql: () => "update {schedule} set next_at = cursor_at + 3600000000 where name = 'paused'",
  },
  {
    check: "no schedule is stuck",
    sql: () =>
      "update {schedule} set next_at = cursor_at - 599999, cursor_at = cursor_at - 600000 where name = 'yearly'",
    undo: () =>
      "update {schedule} set next_at = 4102444800000, cursor_at = cursor_at + 600000 where name = 'yearly'",
  },
  {
    check: "a schedule knows its live runs",
    sql: (_, engine) =>
      `update {schedule} set live = ${engine === "sqlite" ? "'[]'" : "'{}'"} where name = 'slow'`,
  },
  {
    check: "a gate is opened by its schedule",
    sql: () => `update {schedule} set is_gated = ${NO} where name = 'queued'`,
  },
  {
    check: "runs that must not overlap do not",
    sql: () =>
      `update {schedule} set definition = replace(definition, '"overlap":"allow"', '"overlap":"skip"') where name = 'allowed'`,
    undo: () =>
      `update {schedule} set definition = replace(definition, '"overlap":"skip"', '"overlap":"allow"') where name = 'allowed'`,
  },
  {
    check: "a schedule has its version kept",
    sql: () => `delete from {schedule_version} where schedule = ${nowhere("slow")}`,
  },
  {
    check: "a run that counts in a limit is ready or held",
    sql: ({ waiting }) =>
      `insert into {flow_run} (run, flow) select '${waiting}', min(id) from {flow}`,
  },
  {
    check: "a run that a limit let through counts in it",
    sql: ({ ready }) => `update {ready} set limited = ${YES} where id = '${ready}'`,
  },
  {
    check: "a run that waits for a limit stands in its line",
    sql: () => "update {flow_line} set look_at = null",
  },
  { check: "the window of a rate adds up", sql: () => "update {flow} set used = used + 5" },
  {
    check: "a batch counts its runs",
    sql: () => "update {batch} set unended = unended + 1 where unended > 0",
  },
  { check: "items are counted", sql: () => "update {item_count} set items = items + 1" },
  {
    check: "a run that sleeps has an open wait",
    sql: ({ dreaming }) => `delete from {wait} where run = '${dreaming}'`,
  },
  {
    check: "a run that sleeps wakes by its first deadline",
    sql: ({ napping }) =>
      `update {waiting} set wake_at = wake_at + 86400000 where id = '${napping}'`,
  },
  {
    check: "no run sleeps through the end of a wait",
    how: "a signal",
    sql: ({ hearing }) =>
      `insert into {signal} (name, key, value, at, is_new)
       select 'approved', key, '1', since, ${NO} from {wait} where run = '${hearing}'`,
  },
  {
    check: "no run sleeps through the end of a wait",
    how: "a call",
    sql: ({ calling }) =>
      `update {wait} set ended_at = since, status = 1, value = '1' where run = '${calling}'`,
  },
  {
    check: "no run sleeps through the end of a wait",
    how: "a call whose end was not stored",
    sql: ({ ringing, failed }) => `update {wait} set child = '${failed}' where run = '${ringing}'`,
  },
  {
    check: "an open wait belongs to a live run",
    how: "it has ended",
    sql: ({ done }) =>
      `insert into {wait} (run, name, kind, generation, fence, since, until) values ('${done}', 'sleep', 1, 0, 0, 0, 1)`,
  },
  {
    check: "an open wait belongs to a live run",
    how: "it is gone",
    sql: () =>
      `insert into {wait} (run, name, kind, generation, fence, since, until) values ('${NOBODY}', 'sleep', 1, 0, 0, 0, 1)`,
  },
  {
    check: "an open wait has no end",
    sql: ({ listening }) =>
      `insert into {step} (run, no, name, kind, generation, fence, tries, started_at, ended_at, signal, key)
       select run, 1, name, kind, generation, fence, 1, since, since, signal, key from {wait} where run = '${listening}'`,
  },
  {
    check: "a call makes one run",
    sql: ({ calling }) =>
      `insert into {run} (id, created_at, due_at, lane, policy, version, priority, mode, parent, batch, input)
       select '${NOBODY}', created_at, due_at, lane, policy, version, priority, mode, parent, batch, input
       from {run} where parent = '${calling}';
       insert into {outcome} (id, finished_at, lane, attempt, extra, status)
       select '${NOBODY}', created_at, lane, 0, 0, 3 from {run} where id = '${NOBODY}'`,
    undo: () =>
      `delete from {run} where id = '${NOBODY}'; delete from {outcome} where id = '${NOBODY}'`,
  },
  {
    check: "a lock that is held has not ended",
    sql: () =>
      `insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at)
       select fence, name, holder, 1, acquired_at, until, acquired_at from {held_lock}`,
  },
  {
    check: "a lock has one holder at a time",
    sql: () => `update {lock_history} set ended_at = ended_at + 3600000
      where fence = (select min(fence) from {lock_history} where name = 'again')`,
    undo: () => `update {lock_history} set ended_at = ended_at - 3600000
      where fence = (select min(fence) from {lock_history} where name = 'again')`,
  },
  {
    check: "a pause of everything ends after it began",
    sql: () => "insert into {pause} (at, until_at) values (2000, 1000)",
  },
  {
    check: "a delivery of an alert waits, was sent or was given up",
    sql: () =>
      `insert into {alert} (id, kind, subject_type, subject, severity, message, evidence, first_at, last_at, resolved_at)
         values ('${NOBODY}', 'stale', 'job', 'x', 'critical', 'x', '{}', 0, 0, 0);
       insert into {alert_delivery} (alert, event, destination, state, attempts, next_at, tried_at)
         values ('${NOBODY}', 'opened', 'desk', 'lost', 1, 0, 0)`,
    undo: () =>
      `delete from {alert_delivery} where alert = '${NOBODY}'; delete from {alert} where id = '${NOBODY}'`,
  },
  {
    check: "a delivery of an alert has its alert",
    sql: () =>
      `insert into {alert_delivery} (alert, event, destination, state, attempts, next_at, tried_at)
       values ('${NOBODY}', 'opened', 'desk', 'sent', 1, 0, 0)`,
  },
  {
    check: "an entry of the audit trail says who did what",
    sql: () =>
      "insert into {audit} (at, via, who, verb, noun) select max(at), 'hand', 'x', 'edit', 'schedule' from {audit}",
    undo: () => "delete from {audit} where via = 'hand'",
  },
  {
    check: "a session of the page belongs to a secret",
    sql: () => "insert into {session} (digest, secret, until_at) values ('short', '', 0)",
  },
  {
    check: "a named key has a digest and opens a scope",
    sql: () =>
      `insert into {access_key} (name, digest, scopes, created_at, created_by) values ('odd', 'short', '[]', 0, 'x')`,
  },
  {
    check: "a grant of a lock ended in a known way",
    sql: () =>
      `insert into {lock_history} (fence, name, holder, state, acquired_at, until, ended_at)
       values (0, 'odd', 'x', 7, 0, 0, 0)`,
    undo: () => "delete from {lock_history} where name = 'odd'",
  },
  {
    check: "an attempt belongs to a run",
    sql: () =>
      `insert into {attempt} (run, fence, attempt, ended, holder, started_at, ended_at) values ('${NOBODY}', 0, 1, 0, 1, 0, 0)`,
  },
  {
    check: "an item belongs to a run",
    sql: (_, engine) =>
      `insert into {item} (run, key, fence, attempt, ${engine === "sqlite" ? "" : "tries, "}outcome, started_at, duration_ms)
       values ('${NOBODY}', 'a', 0, 1, ${engine === "sqlite" ? "" : "1, "}'ok', 0, 0)`,
  },
  {
    check: "a count of items belongs to a run",
    sql: () => `insert into {item_count} (run, outcome, items) values ('${NOBODY}', 'ok', 1)`,
  },
  {
    check: "progress belongs to a run",
    sql: () =>
      `insert into {progress} (run, fence, attempt, at, stages) values ('${NOBODY}', 0, 1, 0, '[]')`,
  },
  {
    check: "a log line belongs to a run",
    sql: () =>
      `insert into {log} (run, fence, no, attempt, at, level, message) values ('${NOBODY}', 0, 1, 1, 0, 1, 'x')`,
  },
  {
    check: "a run of a schedule has it",
    sql: ({ done }) => `update {run} set schedule = 9999 where id = '${done}'`,
  },
  {
    check: "a tick belongs to a schedule",
    sql: () =>
      "insert into {tick} (schedule, at, last_at, count, outcome, reason, recorded_at, version) values (9999, 0, 0, 1, 1, 4, 0, 1)",
  },
  {
    check: "a version belongs to a schedule",
    sql: () =>
      "insert into {schedule_version} (schedule, version, kind, at, job, definition, input, anchor_at) values (9999, 1, 0, 0, 'x', '{}', 'null', 0)",
  },
  {
    check: "a definition in code belongs to a schedule",
    sql: () => "insert into {declared} (schedule, hash, first_seen_at) values (9999, 'x', 0)",
  },
  {
    check: "a delivery belongs to a schedule",
    sql: () =>
      `insert into {delivery} (schedule, id, run, input_hash) values (9999, 'x', '${NOBODY}', 'x')`,
  },
  {
    check: "a backfill belongs to a schedule",
    sql: () =>
      `insert into {backfill} (id, schedule, from_at, to_at, cursor_at, total, made, passed, is_all, created_at, is_cancelled)
       values ('${NOBODY}', 9999, 0, 0, 0, 0, 0, 0, ${NO}, 0, ${NO})`,
  },
  {
    check: "a backfilled tick belongs to a schedule",
    sql: () =>
      `insert into {backfill_run} (schedule, at, backfill, run) values (9999, 0, '${NOBODY}', '${NOBODY}')`,
  },
  {
    check: "a schedule's backfill is there",
    sql: () => `update {schedule} set backfill = '${NOBODY}' where name = 'paused'`,
  },
  {
    check: "a line belongs to a limit",
    sql: () => `insert into {flow_line} (flow, lane, suspect) values (9999, 1, ${NO})`,
  },
  {
    check: "a turn belongs to a limit",
    sql: () => "insert into {flow_turn} (flow, at, runs) values (9999, 0, 1)",
  },
  {
    check: "a run that was let through has its limit",
    sql: ({ held }) => `insert into {flow_run} (run, flow) values ('${held}', 9999)`,
  },
  {
    check: "a run has its lane",
    sql: ({ ready }) =>
      `update {run} set lane = 9999 where id = '${ready}'; update {ready} set lane = 9999 where id = '${ready}'`,
    undo: ({
      ready,
    }) => `update {run} set lane = (select max(id) from {lane} where job = 'elsewhere') where id = '${ready}';
      update {ready} set lane = (select max(id) from {lane} where job = 'elsewhere') where id = '${ready}'`,
  },
  {
    check: "a run has its policy",
    sql: ({ ready }) =>
      `update {run} set policy = policy + 9000 where id = '${ready}'; update {ready} set policy = policy + 9000 where id = '${ready}'`,
    undo: ({ ready }) =>
      `update {run} set policy = policy - 9000 where id = '${ready}'; update {ready} set policy = policy - 9000 where id = '${ready}'`,
  },
  {
    check: "a job has its policy",
    sql: () => "update {job} set policy = policy + 9000 where name = 'unused'",
    undo: () => "update {job} set policy = policy - 9000 where name = 'unused'",
  },
];

/** Something of everything that can be damaged. */
async function populated(
  world: World,
): Promise<{ readonly member: Member; readonly facts: Facts }> {
  const member = world.member();
  const { holdfast } = member;
  const never = new Door().opened;
  const plain = holdfast.job("plain", {
    run: async (_, ctx) => {
      await ctx.item("a", () => 1);
      ctx.progress({ stage: "one" });
      ctx.log.info("a line");
    },
  });
  const failing = holdfast.job("failing", {
    retry: { attempts: 2, delay: "1s", jitter: 0 },
    run: () => {
      throw new Error("no");
    },
  });
  const slow = holdfast.job("slow", { timeout: "20h", lease: "10h", run: () => never });
  const elsewhere = holdfast.job("elsewhere", {});
  const limited = holdfast.job("limited", {
    timeout: "20h",
    lease: "10h",
    concurrency: { limit: 1 },
    rate: { limit: 5, per: "1h" },
    run: () => never,
  });
  holdfast.job("unused", {});
  const parent = holdfast.job("parent", {
    run: (_, ctx) => ctx.enqueueBatch([{ job: elsewhere, input: {} }], { then: plain }),
  });
  const napping = holdfast.job("napping", { run: (_, ctx) => ctx.sleep("30d") });
  const listening = holdfast.job("listening", { run: (_, ctx) => ctx.waitFor("approved") });
  const calling = holdfast.job("calling", { run: (_, ctx) => ctx.call(elsewhere, {}) });
  holdfast.schedule("minutely", plain, { cron: "* * * * *" });
  holdfast.schedule("slow", slow, { every: "1m" });
  holdfast.schedule("queued", slow, { every: "1m", overlap: "queue" });
  holdfast.schedule("allowed", slow, { every: "1m", overlap: "allow" });
  holdfast.schedule("paused", plain, { every: "1h" });
  holdfast.schedule("yearly", plain, { at: "2100-01-01T00:00:00Z" });
  await holdfast.start({ worker: { concurrency: 50 } });
  await holdfast.schedules.pause("paused");
  const done = await plain.enqueue({}, { key: "one" });
  await world.ended(done.id);
  const failed = await failing.enqueue({});
  await world.ended(failed.id);
  const held = await slow.enqueue({});
  const waiting = await plain.enqueue({}, { delay: "30d" });
  const ready = await elsewhere.enqueue({});
  const sleepers = {
    napping: (await napping.enqueue({})).id,
    dreaming: (await napping.enqueue({})).id,
    listening: (await listening.enqueue({})).id,
    hearing: (await listening.enqueue({})).id,
    calling: (await calling.enqueue({})).id,
    ringing: (await calling.enqueue({})).id,
  };
  await limited.enqueueMany([{}, {}]);
  await world.ended((await parent.enqueue({})).id);
  for (let time = 0; time < 2; time += 1)
    await world.clock.until(holdfast.lock("again", {}, () => time));
  void holdfast.lock("kept", { lease: "10h" }, () => never).catch(() => undefined);
  await world.clock.advance(190_000);
  const [row] = await world.rows(
    `select run from ${world.table("tick")} where outcome = 0 and schedule = (
       select id from ${world.table("schedule")} where name = 'minutely') order by at desc limit 1`,
  );
  const facts = {
    ...sleepers,
    waiting: waiting.id,
    ready: ready.id,
    held: held.id,
    done: done.id,
    failed: failed.id,
    fired: String(row?.run),
  };
  await world.ended(facts.fired);
  return { member, facts };
}

export function checkSuite(engine: "sqlite" | "postgres", make: () => Promise<EnginePlace>): void {
  describe(`checks and repairs on ${engine}`, () => {
    let world: World;
    let member: Member;
    let facts: Facts;
    beforeAll(async () => {
      world = new World(await make());
      ({ member, facts } = await populated(world));
    });
    afterAll(() => world.end());

    const check = () => world.clock.until(member.holdfast.check());
    const broken = async () => (await check()).checks.filter(({ ok }) => !ok);

    test("every check has its plant", () => {
      // Whom the schema belongs to is no matter of rows: search-path.test.ts gives it away.
      const ofRows = CHECKS.filter(({ name }) => name !== "the schema belongs to no other role");
      expect([...new Set(PLANTS.map((plant) => plant.check))].sort()).toEqual(
        ofRows.map(({ name }) => name).sort(),
      );
    });

    for (const plant of PLANTS) {
      const { how } = plant;
      test(`found, and nothing else: ${plant.check}${how ? ` (${how})` : ""}`, async () => {
        expect(await broken()).toEqual([]);
        await world.execute(plant.sql(facts, engine));
        const found = await broken();
        expect(found.map(({ name, error }) => [name, error])).toEqual([[plant.check, null]]);
        expect(found[0]?.violations).toBeGreaterThan(0);
        expect(found[0]?.evidence[0]?.what).toEqual(expect.any(String));

        const planned = await world.clock.until(member.holdfast.repair());
        expect(planned).toMatchObject({ ok: false, applied: false, broken: [plant.check] });
        expect((await broken()).map(({ name }) => name)).toEqual([plant.check]);
        const applied = await world.clock.until(member.holdfast.repair({ apply: true }));
        const [step] = applied.steps;
        expect(applied.steps.map((each) => each.check)).toEqual([plant.check]);
        if (plant.byScheduler) {
          await world.clock.advance(5_000);
        } else if (plant.undo) {
          expect([step?.action, step?.advice]).toEqual([null, expect.any(String)]);
          await world.execute(plant.undo(facts));
        } else {
          expect({ ok: applied.ok, broken: applied.broken }).toEqual({ ok: true, broken: [] });
          expect(step?.changed).toBeGreaterThan(0);
          const [entry] = (await member.holdfast.audit.list({ noun: "everything" })).entries;
          expect(entry).toMatchObject({ verb: "repair", change: plant.check });
          const again = await world.clock.until(member.holdfast.repair({ apply: true }));
          expect(again).toEqual({ ok: true, applied: true, steps: [], broken: [] });
        }
        expect(await broken()).toEqual([]);
      });
    }

    test("while everything is paused, nothing is broken, and nothing after it", async () => {
      await world.clock.until(member.holdfast.pause({ note: "for the move" }));
      await world.clock.advance(900_000);
      expect(await broken()).toEqual([]);
      await world.clock.until(member.holdfast.resume());
      expect(await broken()).toEqual([]);
      await world.clock.advance(5_000);
      expect(await broken()).toEqual([]);
    });
  });
}
