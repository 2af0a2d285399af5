// The raw limit for schedules: hand-written SQL that writes what Holdfast writes when schedules fire, into Holdfast's
// own tables: the advance of each schedule at its revision, a ledger row, a run and a ready row, a thousand in one
// statement. It evaluates nothing (every schedule is daily), and its next batch is sent before the last is answered.

import pg from "pg";
import { insidePostgres } from "./schedule-copies.mjs";
import { open as openHoldfast } from "./schedules-holdfast.mjs";

const BATCH = 1000;
const READ_MAX = 10_000;
const POLL_MS = 1000;
const A_DAY_MS = 86_400_000;
const CLOCK = "(extract(epoch from clock_timestamp()) * 1000)::bigint";

const DUE = /* sql */ `
  select id, revision, next_at from holdfast.schedule where next_at <= ${CLOCK} order by next_at limit ${READ_MAX}`;
const NEXT = /* sql */ `
  select min(next_at) - ${CLOCK} as ms from holdfast.schedule where next_at is not null`;

const FIRE = /* sql */ `
  with now as materialized (select ${CLOCK} as at),
  sent as materialized (
    select x.*, uuidv7() as run from unnest($1::int[], $2::bigint[], $3::bigint[]) x (id, revision, tick)),
  won as (
    update holdfast.schedule s set revision = s.revision + 1, cursor_at = x.tick, next_at = x.tick + ${A_DAY_MS},
      last_run = x.run, last_tick_at = x.tick, live = array[x.run]
    from sent x where s.id = x.id and s.revision = x.revision
    returning s.id, s.version, s.input, s.tags, x.tick, x.run),
  ledger as (
    insert into holdfast.tick (schedule, at, last_at, count, outcome, reason, recorded_at, holder, version, run, evidence)
    select w.id, w.tick, w.tick, 1, 0, 0, now.at, 1, w.version, w.run, null from won w cross join now),
  stored as (
    insert into holdfast.run (id, created_at, due_at, lane, policy, version, priority, mode, schedule, nominal_at, tags, input)
    select w.run, now.at, now.at, $4::int, $5::int, 1, 0, 0, w.id, w.tick, w.tags, w.input from won w cross join now)
  insert into holdfast.ready (id, sort_at, lane, policy, attempt, losses, refunds, laters, extra, suspect)
  select w.run, now.at, $4::int, $5::int, 0, 0, 0, 0, 0, false from won w cross join now`;

/** @param {{ url: string }} params */
export async function open({ url }) {
  // Tables and schedules are Holdfast's own; it is not started.
  const holdfast = await openHoldfast({ url });
  const client = new pg.Client({ connectionString: url, pipeline: true });
  client.on("error", () => {});
  await client.connect();
  await client.query("set plan_cache_mode = force_generic_plan; set jit = off");
  let isStopping = false;

  const arrayOf = (rows, member) => `{${rows.map((row) => row[member]).join(",")}}`;

  const fireDue = async ({ lane, policy }) => {
    const { rows } = await client.query({ name: "due", text: DUE });
    const sent = [];
    for (let from = 0; from < rows.length; from += BATCH) {
      const batch = rows.slice(from, from + BATCH);
      const columns = ["id", "revision", "next_at"].map((member) => arrayOf(batch, member));
      sent.push(client.query({ name: "fire", text: FIRE, values: [...columns, lane, policy] }));
    }
    await Promise.all(sent);
    return rows.length;
  };

  return {
    seed: holdfast.seed,
    watch: holdfast.watch,

    async start() {
      const codes = await insidePostgres(url, async (session) => {
        const { rows } = await session.query(
          "select l.id as lane, j.policy from holdfast.job j join holdfast.lane l on l.job = j.name and l.queue = j.queue",
        );
        return rows[0];
      });
      const loop = async () => {
        while (!isStopping) {
          if ((await fireDue(codes)) > 0) continue;
          const { rows } = await client.query({ name: "next", text: NEXT });
          const waitMs = Math.min(POLL_MS, rows[0].ms === null ? POLL_MS : Number(rows[0].ms));
          await new Promise((resolve) => setTimeout(resolve, Math.max(1, waitMs)));
        }
      };
      void loop();
    },

    async close() {
      isStopping = true;
      await client.end();
      await holdfast.close();
    },
  };
}
