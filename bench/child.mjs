// The child's side of a measurement: one process, one contestant, obeying its parent's messages.
// All stamps are milliseconds of the machine's monotonic clock, which every process on it shares.

import { setTimeout as pause } from "node:timers/promises";
import { httpActions } from "./child-http.mjs";
import { itemActions } from "./child-items.mjs";
import { lockActions } from "./child-locks.mjs";
import { scheduleActions } from "./child-schedules.mjs";
import { stepActions } from "./child-steps.mjs";
import { contestantNamed } from "./contestants.mjs";

const MARK_EVERY = 500;
const REPORT_MS = 5;
const BATCH = 5000;
const TICKS = 100;

const stamp = () => Number(process.hrtime.bigint()) / 1e6;
const inputsOf = (count, from = 0) =>
  Array.from({ length: count }, (_, index) => ({
    number: from + index,
    address: "someone@example.org",
  }));

const contestant = contestantNamed(process.argv[2]);
const { open } = await import(`./${contestant.file}`);

/** The opened contestant; a second opening closes nothing, `close` does. */
let place;

// ---- what the handler notes: a count, a stamp per MARK_EVERY runs, and for pickup a stamp per run
let handled = 0;
let firstAt = 0;
let lastAt = 0;
let marks = [];
let starts = null;
let isEndless = false;

function onRun(input) {
  lastAt = stamp();
  if (handled === 0) firstAt = lastAt;
  handled++;
  if (handled % MARK_EVERY === 0) marks.push(lastAt);
  if (starts) starts.push([input.number, lastAt]);
  if (isEndless) return new Promise(() => {});
}

function forget() {
  handled = 0;
  firstAt = 0;
  lastAt = 0;
  marks = [];
  starts = null;
  isEndless = false;
}

async function untilHandled(count) {
  while (handled < count) await pause(2);
}

async function untilDone() {
  while (!(await place.isDone())) await pause(2);
  return stamp();
}

async function seed({ count, delayMs = 0 }) {
  for (let done = 0; done < count; done += BATCH) {
    await place.enqueueMany(inputsOf(Math.min(BATCH, count - done), done), delayMs);
  }
}

/** Ticks a second of a walk that begins again whenever it leaves its span. */
function rateOf({ walk, untilMs, ms }) {
  const begin = stamp();
  let count = 0;
  while (stamp() - begin < ms) {
    for (let index = 0; index < TICKS; index++) if (walk.next() >= untilMs) walk.restart();
    count += TICKS;
  }
  return (count / (stamp() - begin)) * 1000;
}

function firstTickMs(params) {
  const begin = stamp();
  place.walk(params).next();
  return stamp() - begin;
}

const actions = {
  ...itemActions(contestant),
  ...stepActions(contestant),
  ...httpActions(contestant),
  ...scheduleActions(contestant),
  ...lockActions(contestant),

  async open(params) {
    place = await open(params);
  },

  seed,

  /** Runs a few thousand runs through this process on another database, so that its code is compiled. */
  async warm({ count, ...params }) {
    place = await open(params);
    await seed({ count });
    forget();
    await place.start(onRun);
    await untilHandled(count);
    await untilDone();
    await place.stop();
    await place.close();
    forget();
  },

  /** Empties the place: seeds become finished runs. */
  async drain({ count }) {
    forget();
    await place.start(onRun);
    await untilHandled(count);
    await untilDone();
    await place.stop();
  },

  /** `callers` loops, each waiting for its own call: a warm-up first, then for `ms`. */
  async enqueueFor({ callers, warmMs, ms }) {
    const [input] = inputsOf(1);
    const begin = stamp() + warmMs;
    const end = begin + ms;
    let count = 0;
    const caller = async () => {
      for (;;) {
        await place.enqueue(input);
        const now = stamp();
        if (now >= end) return;
        if (now >= begin) count++;
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
    return { perSecond: (count / ms) * 1000 };
  },

  /** Calls of `size` runs, one after the other, for at least `ms`. */
  async bulkFor({ size, ms }) {
    const inputs = inputsOf(size);
    await place.enqueueMany(inputs);
    const begin = stamp();
    let count = 0;
    while (stamp() - begin < ms) {
      await place.enqueueMany(inputs);
      count += size;
    }
    return { perSecond: (count / (stamp() - begin)) * 1000 };
  },

  /** Single calls at random moments, with the time of each call and of its acknowledgement. */
  async trickle({ count, gapMs: [shortest, longest] }) {
    const calls = [];
    for (const input of inputsOf(count)) {
      await pause(shortest + Math.random() * (longest - shortest));
      const calledAt = stamp();
      await place.enqueue(input);
      calls.push([input.number, calledAt, stamp()]);
    }
    return calls;
  },

  /** Claims one after the other; how long each took. */
  async claimFor({ count, limit }) {
    const times = [];
    while (times.length < count) {
      const calledAt = stamp();
      const got = await place.claim(limit);
      if (got !== limit) throw new Error(`A claim of ${limit} got ${got}.`);
      times.push(stamp() - calledAt);
    }
    return times;
  },

  /** Begins to work. Reports progress to the parent a few hundred times a second at most. */
  async go(params) {
    forget();
    isEndless = params.isEndless ?? false;
    if (params.keepStarts) starts = [];
    const cpuBefore = process.cpuUsage();
    let reported = 0;
    const timer = setInterval(() => {
      if (handled === reported) return;
      reported = handled;
      process.send({ handled });
    }, REPORT_MS);
    timer.unref();
    actions.cpuMs = () => {
      const { user, system } = process.cpuUsage(cpuBefore);
      return (user + system) / 1000;
    };
    await place.start(onRun);
  },

  /** Resolves with the moment at which the contestant's own tables show that nothing is left. */
  untilDone,

  /** The text, the values and the size of a claim, for EXPLAIN. */
  async claimStatement() {
    return place.claimStatement();
  },

  /** All cases run uncounted before the first one counts, so that no code is compiled for one case alone. */
  async walkFor({ cases, warmMs, ms }) {
    const walks = cases.map((one) => ({ walk: place.walk(one), untilMs: one.untilMs }));
    for (const one of walks) rateOf({ ...one, ms: warmMs });
    return walks.map((one) => rateOf({ ...one, ms }));
  },

  /** The first tick of all, then, with the code compiled, the first one in each zone. */
  async firstTicks({ coldZone, warmZones, zones, warmMs, ...params }) {
    const coldMs = firstTickMs({ ...params, timezone: coldZone });
    const untilMs = Number.POSITIVE_INFINITY;
    for (const timezone of warmZones)
      rateOf({ walk: place.walk({ ...params, timezone }), untilMs, ms: warmMs });
    return { coldMs, ms: zones.map((timezone) => firstTickMs({ ...params, timezone })) };
  },

  /** Virtual time in the test kit; returns the real time that it took. */
  async pass(params) {
    const begin = stamp();
    const answer = await place.pass(params);
    return { ...answer, ms: stamp() - begin };
  },

  async notes() {
    const rssMiB = process.memoryUsage.rss() / 1024 / 1024;
    return { handled, firstAt, lastAt, marks, starts, cpuMs: actions.cpuMs(), rssMiB };
  },

  async stop() {
    await place.stop();
  },

  async close() {
    await place.close();
  },
};

process.on("message", async ({ id, action, params }) => {
  try {
    process.send({ id, value: await actions[action](params ?? {}) });
  } catch (error) {
    process.send({ id, error: error?.stack ?? String(error) });
  }
});
process.on("disconnect", () => process.exit(0));
process.send({ ready: true });
