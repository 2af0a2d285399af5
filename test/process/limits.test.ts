// Limits over processes that are killed: never one too many, every run ends, nothing stays taken.

import { expect } from "vitest";
import { until } from "../support/until.js";
import { allRuns, onBothDatabases, type WorkerProcesses } from "./worker-processes.js";

const PROCESSES = 6;
const RUNS = 1_000;
const KILLS = 6;
const LIMIT = 3;
const ACCOUNTS = ["a", "b", "c", "d", "e", "f", "g"];

const MEMBERS = {
  sqlite: "{lease} k, json_each(k.ids) m join {run} r on r.id = m.value",
  postgres: "{lease} k cross join unnest(k.ids) m (id) join {run} r on r.id = m.id",
};
const ID = { sqlite: "m.value", postgres: "m.id" };

async function startProcesses(processes: WorkerProcesses, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, at) => `worker-${at}`);
  await Promise.all(names.map((name) => processes.start(name, ORDERS)));
}
const ORDERS = { concurrency: 4, lease: "2s", attempts: 20 };

onBothDatabases((test, engine) => {
  test("a thousand runs under a limit of three for each key, over six processes that are killed", async ({
    processes,
  }) => {
    await startProcesses(processes, PROCESSES);
    const observer = processes.observer();
    const accountOf = (at: number) => ACCOUNTS[at % ACCOUNTS.length];
    await Promise.all(
      Array.from({ length: RUNS }, (_, at) =>
        observer.enqueue("limited", { account: accountOf(at), ms: 5 }),
      ),
    );
    // One look is one snapshot: who holds a run of which key, and who is counted.
    let looks = 0;
    let most = 0;
    const look = async () => {
      const [row] = await processes.ask(`select
        (select max(held) from (select count(*) as held from ${MEMBERS[engine]} group by r.input) x) as holders,
        (select max(held) from (select count(*) as held from {flow_run} where held is not null group by held) y) as counted,
        (select count(*) from ${MEMBERS[engine]}
          where not exists (select 1 from {flow_run} f where f.run = ${ID[engine]})) as uncounted`);
      expect(Number(row?.uncounted)).toBe(0);
      expect(Number(row?.holders ?? 0)).toBeLessThanOrEqual(LIMIT);
      expect(Number(row?.counted ?? 0)).toBeLessThanOrEqual(LIMIT);
      most = Math.max(most, Number(row?.counted ?? 0));
      looks += 1;
    };
    let kills = 0;
    await until(
      "every run has ended",
      async () => {
        await look();
        if (kills < KILLS && processes.starts().length > (kills + 1) * (RUNS / (KILLS + 2))) {
          const victim = processes.workers.filter(({ hasExited }) => !hasExited)[kills % PROCESSES];
          victim?.signal("SIGKILL");
          await victim?.exit;
          kills += 1;
          processes.spawn(`spare-${kills}`, ORDERS);
        }
        const [left] = await processes.ask(
          "select (select count(*) from {run}) - (select count(*) from {outcome}) as runs",
        );
        return Number(left?.runs) === 0;
      },
      { everyMs: 50 },
    );
    const runs = await allRuns(observer);
    expect(runs).toHaveLength(RUNS);
    expect(runs.filter(({ status }) => status !== "completed")).toEqual([]);
    expect(kills).toBe(KILLS);
    expect(most).toBe(LIMIT);
    expect(looks).toBeGreaterThan(10);
    const [taken] = await processes.ask("select count(*) as runs from {flow_run}");
    expect(Number(taken?.runs)).toBe(0);
    for (const event of ["overclaim", "refused"]) expect(processes.heard(event)).toEqual([]);
  });

  test("no window of the database's clock has more claims than the rate, however many processes claim", async ({
    processes,
  }) => {
    await startProcesses(processes, 3);
    // The database itself keeps every claim.
    await processes.ask(`create table {claim_log} (at bigint not null, runs bigint not null)`);
    for (const statement of LOG_CLAIMS[engine]) await processes.ask(statement);
    const observer = processes.observer();
    const total = 90;
    await Promise.all(
      Array.from({ length: total }, () => observer.enqueue("paced", { account: "a", ms: 1 })),
    );
    await until(
      "every run has ended",
      async () => {
        const [ended] = await processes.ask("select count(*) as runs from {outcome}");
        return Number(ended?.runs) === total;
      },
      { everyMs: 100 },
    );
    const rows = await processes.ask("select at, runs from {claim_log} order by at");
    const claims = rows.flatMap(({ at, runs }) => Array<number>(Number(runs)).fill(Number(at)));
    expect(claims.length).toBeGreaterThanOrEqual(total);
    const tooSoon = claims.filter((at, n) => n >= 20 && at - (claims[n - 20] as number) < 1_000);
    expect(tooSoon).toEqual([]);
  });
});

const LOG_CLAIMS = {
  sqlite: [
    `create trigger {log_claims} after insert on {lease} begin
      insert into {claim_log} values (new.claimed_at, json_array_length(new.ids)); end`,
  ],
  postgres: [
    `create function {log_claims}() returns trigger language plpgsql as $$ begin
      insert into {claim_log} values (new.claimed_at, cardinality(new.ids)); return new; end $$`,
    "create trigger log_claims after insert on {lease} for each row execute function {log_claims}()",
  ],
};
