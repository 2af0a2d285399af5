// Measures the cost of schedules: an idle instance and one poll of it beside more and more schedules that are not due, and
// the firing of a thousand of them. Counts statements and buffers on PostgreSQL, and CPU time on SQLite.

import { setTimeout as pause } from "node:timers/promises";
import { contestantNamed } from "../contestants.mjs";
import { postgresPlaces, sqlitePlaces } from "../places.mjs";
import { withProcesses } from "../processes.mjs";
import { buffersOf, explained } from "../scenarios/explain.mjs";
import { forgetStatements, statementsOf } from "./statements.mjs";

const DUE = 1000;
const IDLE_MS = 15_000;
const LEAD_MS = 8000;
const A_DAY_MS = 86_400_000;
const A_MINUTE_MS = 60_000;

export const schedulesCurve = {
  async measure({ serverUrl, folder, max, say }) {
    const sizes = [1e2, 1e3, 1e4, 1e5, 1e6].filter((size) => size <= max);
    const places = { postgres: postgresPlaces(serverUrl), sqlite: sqlitePlaces(folder) };
    const figures = { postgres: [], sqlite: [] };
    for (const count of sizes) {
      for (const [engine, name] of [
        ["postgres", "holdfast"],
        ["sqlite", "holdfast-sqlite"],
      ]) {
        const contestant = contestantNamed(name);
        const measured = await costsOf({ contestant, places: places[engine], count });
        figures[engine].push({ count, ...measured });
        say(`schedules ${count} ${engine} ${JSON.stringify(measured)}`);
      }
    }
    await places.postgres.close();
    return figures;
  },

  draw({ postgres }) {
    const line = (name, figure) => ({
      name,
      points: postgres.map((row) => [row.count, row[figure]]),
    });
    return {
      schedules: {
        title: "What schedules cost on PostgreSQL",
        note: `An instance beside schedules that are not due, and the firing of ${DUE.toLocaleString("en")} among them`,
        xName: "schedules",
        yName: "each",
        isLogY: true,
        lines: [
          line("buffers of a fire", "fireBuffers"),
          line("buffers of an idle poll", "pollBuffers"),
          line("statements a second, idle", "statementsPerSecond"),
        ],
      },
    };
  },
};

async function costsOf({ contestant, places, count }) {
  const place = await places.fresh(contestant, {});
  const isPostgres = contestant.engine === "postgres";
  try {
    return await withProcesses(contestant, 1, async (scheduler) => {
      await scheduler.ask("openSchedules", { url: place.url, isCounting: isPostgres });
      const monthAt = Math.ceil(Date.now() / 1000) * 1000 + 30 * A_DAY_MS;
      const spread = { spreadMs: A_DAY_MS };
      await scheduler.ask("seedSchedules", { label: "idle", count, atMs: monthAt, ...spread });
      await scheduler.ask("startSchedules");
      await pause(2000);
      await scheduler.ask("markCost");
      await pause(IDLE_MS);
      const { cpuMs, statements } = await scheduler.ask("cost");
      const cpuMsPerMinute = (cpuMs / IDLE_MS) * A_MINUTE_MS;
      if (!isPostgres) return { cpuMsPerMinute };
      const session = await places.session(place.url);
      const plan = await explained(session, await scheduler.ask("pollStatement"));
      const fire = await fireCost({ scheduler, session });
      await session.end();
      return {
        statementsPerSecond: statements / (IDLE_MS / 1000),
        cpuMsPerMinute,
        pollBuffers: buffersOf(plan),
        ...fire,
      };
    });
  } finally {
    await place.drop();
  }
}

/** Everything that the instance did from just before the instant until all are fired, idle polls included. */
async function fireCost({ scheduler, session }) {
  const atMs = Math.ceil((Date.now() + LEAD_MS) / 1000) * 1000;
  await scheduler.ask("seedSchedules", { label: "due", count: DUE, atMs });
  await pause(Math.max(0, atMs - Date.now() - 300));
  await forgetStatements(session);
  for (let left = DUE; left > 0; await pause(200)) {
    const { rows } = await session.query(
      "select /* bench */ count(*)::int as left from holdfast.schedule where next_at <= $1",
      [atMs],
    );
    left = rows[0].left;
  }
  const { buffers, statements } = await statementsOf(session);
  return { fireBuffers: buffers / DUE, fireStatements: statements };
}
