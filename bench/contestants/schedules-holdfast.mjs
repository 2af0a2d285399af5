// Holdfast's schedules at its default settings, on whichever database the URL names; worker off, scheduler on.
// The first schedule of a batch is made through the public interface, the others are copies of its row.

import { DatabaseSync } from "@photostructure/sqlite";
import { Holdfast } from "../../build/index.js";
import { POLL } from "../../build/store/postgres/poll.js";
import { numbered } from "../../build/store/sql/template.js";
import { postgresWatch } from "./commit-times.mjs";
import { copySchedule, putBack } from "./schedule-copies.mjs";

const JOB = "noop";
const A_DAY_MS = 86_400_000;
const CLOCK = "(extract(epoch from clock_timestamp()) * 1000)::bigint";
const SCHEMA = "holdfast";

/** @param {{ url: string, synchronous?: "full" | "normal" }} params */
export async function open({ url, synchronous }) {
  const holdfast = new Holdfast({
    database: url,
    ...(synchronous === "normal" && { synchronous: "NORMAL" }),
  });
  const job = holdfast.job(JOB, { run: async () => {} });
  await holdfast.schedules.list({ limit: 1 });

  return {
    /** Daily ones: at one instant by cron, over a while by a grid that begins at each one's own moment. */
    async seed({ label, count, atMs, spreadMs }) {
      const when = spreadMs ? { every: "1d" } : { cron: dailyAt(atMs) };
      await holdfast.schedules.upsert(label, { job, ...when });
      if (spreadMs) await putBack({ url, name: label, toMs: atMs - A_DAY_MS, nextMs: atMs });
      await copySchedule({ url, template: label, count, spreadMs });
    },

    /** A schedule that ticked every minute, until all instances left. */
    async seedForgotten({ label, sinceMs }) {
      await holdfast.schedules.upsert(label, { job, cron: "* * * * *", timezone: "Europe/Paris" });
      const nextMs = Math.ceil((sinceMs + 1) / 60_000) * 60_000;
      await putBack({ url, name: label, toMs: sinceMs, nextMs });
    },

    async start() {
      await holdfast.start({ worker: false, scheduler: true });
    },

    watch: url.startsWith("sqlite:")
      ? sqliteWatch(url)
      : postgresWatch(url, {
          isDone: ({ atMs, untilMs }) =>
            `select not exists (select from ${SCHEMA}.schedule where next_at between ${atMs} and ${untilMs}) as done`,
          fires: ({ atMs, untilMs }) =>
            `select xmin, at::float8 as at from ${SCHEMA}.tick where at between ${atMs} and ${untilMs} and run is not null`,
        }),

    /** The instants in the schedule's own row; null while it is behind. */
    async standing({ label }) {
      const schedule = await holdfast.schedules.get(label);
      return schedule?.nextAt ? schedule.nextAt.getTime() : null;
    },

    /** The poll as the store sends it for an instance that runs nothing. */
    pollStatement() {
      const { text, parameters } = numbered(POLL, {
        name: (plain) => `"${SCHEMA}".${plain}`,
        now: CLOCK,
      });
      const values = { isScheduler: true, holder: 1, jobs: [], queues: null };
      return { text, values: parameters.map((name) => values[name]) };
    },

    async close() {
      await holdfast.stop();
    },
  };
}

function dailyAt(atMs) {
  const at = new Date(atMs);
  return `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
}

/** SQLite keeps no commit times: reads what another process can see, every millisecond or so. */
function sqliteWatch(url) {
  return async ({ atMs, untilMs, count, until }) => {
    const database = new DatabaseSync(url.replace(/^sqlite:/, ""));
    const counted = database.prepare(
      "select count(*) as fired from holdfast_tick where at between ? and ? and run is not null",
    );
    const late = [];
    try {
      await until(() => {
        const { fired } = counted.get(atMs, untilMs);
        const now = Date.now();
        while (late.length < fired) late.push(now - atMs);
        return fired >= count;
      }, 1);
    } finally {
      database.close();
    }
    return late;
  };
}
