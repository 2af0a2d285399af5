// pg-boss's schedules, to the minute, at the shortest intervals that it takes: its pass and the queue through which
// it forwards what is due are both looked at every second. That queue hands on 50 at a time, once a second, which no
// setting changes: this is what decides its figure.

import { PgBoss } from "pg-boss";
import { postgresWatch } from "./commit-times.mjs";

const QUEUE = "noop";
const CALLERS = 16;

/** @param {{ url: string }} params */
export async function open({ url }) {
  const settings = { connectionString: url, max: 20, supervise: false };
  const seeder = new PgBoss({ ...settings, schedule: false });
  seeder.on("error", () => {});
  await seeder.start();
  await seeder.createQueue(QUEUE);
  let boss;

  const ofTick = ({ atMs }) => `pgboss.job where name = '${QUEUE}' and data ->> 'at' = '${atMs}'`;

  return {
    async seed({ label, count, atMs }) {
      const at = new Date(atMs);
      const when = `${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
      let made = 0;
      const caller = async () => {
        while (made < count) {
          const number = made++;
          const data = { number, at: String(atMs) };
          await seeder.schedule(QUEUE, when, data, { key: `${label}-${number}`, tz: "UTC" });
        }
      };
      await Promise.all(Array.from({ length: CALLERS }, caller));
    },

    async start() {
      boss = new PgBoss({
        ...settings,
        schedule: true,
        cronMonitorIntervalSeconds: 1,
        cronWorkerIntervalSeconds: 1,
      });
      boss.on("error", () => {});
      boss.on("warning", () => {});
      await boss.start();
    },

    watch: postgresWatch(url, {
      isDone: (params) => `select count(*) >= ${params.count} as done from ${ofTick(params)}`,
      fires: (params) => `select xmin, ${params.atMs}::float8 as at from ${ofTick(params)}`,
    }),

    async close() {
      await boss?.stop({ graceful: false, close: true });
      await seeder.stop({ graceful: false, close: true });
    },
  };
}
