// Measures how fast a backlog of runs that do nothing is executed, in an empty database and in full ones. The clock
// starts with "go", when the processes are warm and connected. It stops when the contestant's own tables show that
// nothing is left, or, if that query would be slow, at the last handler.

import { untilHandled, withProcesses } from "../processes.mjs";

const stamp = () => Number(process.hrtime.bigint()) / 1e6;

/** When the processes together had handled `count` runs. */
function momentOf(notes, count, marksEvery = 500) {
  const marks = notes.flatMap((note) => note.marks).sort((a, b) => a - b);
  const mark = marks[Math.floor(count / marksEvery) - 1];
  return mark ?? Math.max(...notes.map((note) => note.lastAt));
}

/** One drain in a fresh place; `during` may hold something open meanwhile. */
async function drainOnce({
  contestant,
  places,
  sizes,
  state,
  count,
  workers: workerCount = 1,
  waitUntilSettled,
  during,
}) {
  const { synchronous } = state;
  const warm = await places.warm(contestant);
  const place = await places.fresh(contestant, state);
  try {
    return await withProcesses(contestant, workerCount, async (...workers) => {
      for (const worker of workers) {
        await worker.ask("warm", {
          count: sizes.warm,
          url: warm.url,
          tuning: "throughput",
          synchronous,
        });
        await worker.ask("open", { url: place.url, tuning: "throughput", synchronous });
      }
      const letGo = await during?.(place);
      const goAt = stamp();
      await Promise.all([
        untilHandled(workers, count),
        ...workers.map((worker) => worker.ask("go")),
      ]);
      const settledAt = waitUntilSettled ? await workers[0].ask("untilDone") : null;
      const notes = await Promise.all(workers.map((worker) => worker.ask("notes")));
      await letGo?.();
      return { goAt, settledAt, notes, rate: (from, to, runs) => (runs / (to - from)) * 1000 };
    });
  } finally {
    await place.drop();
  }
}

export function drainScenario({
  name,
  title,
  engines,
  workers,
  state,
  countOf,
  waitUntilSettled = false,
  isHeavy = false,
  during,
}) {
  return {
    name,
    title,
    engines,
    isHeavy,
    unit: "runs/s",
    primary: "perSecond",
    async measure({ contestant, places, sizes }) {
      const count = countOf(sizes);
      const drained = await drainOnce({
        contestant,
        places,
        sizes,
        state: state(sizes),
        count,
        workers,
        waitUntilSettled,
        during,
      });
      const { goAt, settledAt, notes, rate } = drained;
      const handledAt = momentOf(notes, count);
      const handled = notes.map((note) => note.handled);
      return {
        perSecond: rate(goAt, settledAt ?? handledAt, count),
        perSecondToLastHandler: rate(goAt, handledAt, count),
        firstAfterMs:
          Math.min(...notes.map((note) => note.firstAt || Number.POSITIVE_INFINITY)) - goAt,
        cpuMsPer1000:
          notes.reduce((sum, note) => sum + note.cpuMs, 0) /
          (handled.reduce((a, b) => a + b) / 1000),
        memoryMiB: Math.max(...notes.map((note) => note.rssMiB)),
        handled,
      };
    },
  };
}

const POSTGRES = ["postgres"];
const countOf = (sizes) => sizes.drain;

const held = {
  name: "drain-held",
  title:
    "drain while another session holds a REPEATABLE READ transaction open, beside the same without it",
  engines: POSTGRES,
  isHeavy: true,
  unit: "runs/s",
  primary: "perSecond",
  async measure({ contestant, places, sizes }) {
    const count = sizes.held;
    const third = count / 3;
    const params = { contestant, places, sizes, state: { pending: count }, count };
    const free = await drainOnce(params);
    const kept = await drainOnce({
      ...params,
      async during({ url }) {
        const session = await places.session(url);
        await session.query("begin isolation level repeatable read");
        await session.query("select count(*) from pg_class");
        return async () => {
          await session.query("commit");
          await session.end();
        };
      },
    });
    const at = (runs) => momentOf(kept.notes, runs);
    const perSecond = kept.rate(kept.goAt, at(count), count);
    const freePerSecond = free.rate(free.goAt, momentOf(free.notes, count), count);
    return {
      perSecond,
      freePerSecond,
      shareOfFree: perSecond / freePerSecond,
      firstThird: kept.rate(kept.goAt, at(third), third),
      lastThird: kept.rate(at(2 * third), at(count), third),
    };
  },
};

export const drainScenarios = [
  drainScenario({
    name: "drain",
    title: "drain of a backlog, one process",
    engines: ["postgres", "redis"],
    state: (sizes) => ({ pending: sizes.drain }),
    countOf,
    waitUntilSettled: true,
  }),
  drainScenario({
    name: "drain-2",
    title: "drain of a backlog, two processes",
    engines: ["postgres", "redis"],
    workers: 2,
    state: (sizes) => ({ pending: sizes.drain }),
    countOf,
    waitUntilSettled: true,
  }),
  drainScenario({
    name: "drain-pending",
    title: "drain of the first part of a million pending runs",
    engines: POSTGRES,
    isHeavy: true,
    state: (sizes) => ({ pending: sizes.crowd }),
    countOf,
  }),
  drainScenario({
    name: "drain-future",
    title: "drain beside a million runs due tomorrow",
    engines: POSTGRES,
    isHeavy: true,
    state: (sizes) => ({ future: sizes.crowd, pending: sizes.drain }),
    countOf,
  }),
  drainScenario({
    name: "drain-finished",
    title: "drain after a million finished runs",
    engines: POSTGRES,
    isHeavy: true,
    state: (sizes) => ({ finished: sizes.crowd, pending: sizes.drain }),
    countOf,
  }),
  held,
];

export const sqliteDrainScenarios = ["full", "normal"].map((synchronous) =>
  drainScenario({
    name: `sqlite-drain-${synchronous}`,
    title: `SQLite: drain of a backlog, one process, synchronous = ${synchronous.toUpperCase()}`,
    engines: ["sqlite"],
    state: (sizes) => ({ pending: sizes.sqliteDrain, synchronous }),
    countOf: (sizes) => sizes.sqliteDrain,
    waitUntilSettled: true,
  }),
);
