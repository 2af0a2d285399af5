// Runs the soak: processes at default settings work for hours on one PostgreSQL server while one of them is killed
// again and again and history is pruned. It measures growth: memory, tables, the write-ahead log, and the duration of
// runs compared with a bare commit. At the end it checks the whole history.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { startPostgres } from "../scripts/postgres.mjs";
import { judge } from "./checks.mjs";
import { Member } from "./child-processes.mjs";
import { ownCheck, pauseSchedules } from "./operator.mjs";
import { readEffects, readOperations } from "./process-notes.mjs";
import { Draw } from "./seeded-random.mjs";
import { SinkPlace } from "./sink-process.mjs";
import { Archive } from "./soak-archive.mjs";
import { CREATE_SOAK } from "./soak-jobs.mjs";
import { measure } from "./soak-measures.mjs";
import { readBare, readMemory } from "./soak-notes.mjs";
import { spreadOf, verdictOf } from "./soak-verdict.mjs";
import { liveRuns, openReader } from "./tables.mjs";
import { duplicatesOf, takeoversOf } from "./takeovers.mjs";
import { Timeline } from "./timeline.mjs";

/** @typedef {import("./soak-verdict.mjs").Sample} Sample */
/** @typedef {import("./soak-verdict.mjs").Window} Window */
/**
 * @typedef {object} SoakOrders
 * @property {boolean} isSteady whether it is never killed, and notes its memory
 * @property {number} rate enqueued runs per second
 * @property {number} sampleMs
 * @property {number} retentionMs
 * @property {number} pruneMs how often `prune` is called, as by a cron of the operator
 */
/** @typedef {{ seconds: number, seed: number, rate: number, tell: (line: string) => void }} SoakParams */
/** @typedef {Awaited<ReturnType<typeof runSoak>>} SoakReport */

const PROGRAM = fileURLToPath(new URL("./soak-process.mjs", import.meta.url));
const READY_LIMIT_MS = 60_000;
/** A lease of 30 s has to expire, and each suspect run is executed alone. */
const DRY_LIMIT_MS = 180_000;

/** For two hours: a sample and a kill every 30 s, windows of 5 minutes, a history of 10 minutes. */
function rhythmOf(/** @type {number} */ seconds) {
  const hours = Math.min(1, seconds / 7_200);
  return {
    sampleMs: Math.max(1_000, Math.round(30_000 * hours)),
    killMs: Math.max(2_000, Math.round(30_000 * Math.sqrt(hours))),
    windowMs: Math.max(2_000, Math.round(300_000 * hours)),
    retentionMs: Math.max(10_000, Math.round(600_000 * hours)),
    pruneMs: Math.max(5_000, Math.round(300_000 * hours)),
  };
}

/**
 * @param {SoakParams & { onWindow?: (report: object) => void }} params
 */
export async function runSoak({ seconds, seed, rate, tell, onWindow = () => undefined }) {
  const rhythm = rhythmOf(seconds);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-soak-"));
  for (const name of ["effects", "bare"]) fs.writeFileSync(path.join(folder, name), "");
  const server = await startPostgres({ settings: { track_commit_timestamp: "on" } });
  await prepare(server.url);
  const sink = await new SinkPlace(path.join(folder, "effects")).open();
  const orders = { seed, folder, database: server.url, sinkPort: sink.port, mayBeSkewed: false };
  const member = (
    /** @type {"worker" | "scheduler" | "asker"} */ role,
    /** @type {number} */ number,
    /** @type {boolean} */ isSteady,
  ) =>
    new Member(number, /** @type {any} */ ({ ...orders, role, isSteady, rate, ...rhythm }), [
      ...(isSteady ? ["--expose-gc"] : []),
      PROGRAM,
    ]);
  const steady = [member("worker", 0, true), member("scheduler", 1, true)];
  const asker = member("asker", 2, true);
  const mortal = [
    ...[3, 4, 5].map((number) => member("worker", number, false)),
    member("scheduler", 6, false),
  ];
  const members = [...steady, asker, ...mortal];
  const onExit = () => {
    for (const each of members) if (each.isAlive) each.kill();
  };
  process.on("exit", onExit);
  const timeline = new Timeline();
  timeline.setWorkers(["w0"]);
  const reader = await openReader(server.url);
  const archive = new Archive();
  /** @type {{ check: string, message: string }[]} */
  const violations = [];
  /** @type {Sample[]} */
  const samples = [];
  /** @type {Window[]} */
  const windows = [];
  /** @type {{ atMs: number, ms: number, isFirstTry: boolean }[]} */
  const times = [];
  let kills = 0;
  let passed = 0;

  const waitFor = async (
    /** @type {string} */ what,
    /** @type {number} */ withinMs,
    /** @type {() => boolean | Promise<boolean>} */ look,
  ) => {
    const until = performance.now() + withinMs;
    while (!(await look())) {
      if (performance.now() > until) {
        violations.push({ check: "L", message: `Not within ${withinMs} ms: ${what}.` });
        return;
      }
      await pause(50);
    }
  };

  let taking = Promise.resolve();
  /** One query at a time, because samples and windows fall together. */
  const take = () => {
    taking = taking.then(takeNow);
    return taking;
  };
  const takeNow = async () => {
    for (const { run, outcome, isFirstTry } of await archive.take(reader)) {
      const { askedAtMs } = JSON.parse(run.input);
      if (run.job !== "quick" || askedAtMs === undefined) continue;
      const ms = Number(outcome.committed) - askedAtMs;
      times.push({ atMs: askedAtMs - startedAt, ms, isFirstTry });
    }
  };

  const sample = async () => {
    await take();
    const measured = await measure(reader);
    samples.push({ atMs: Date.now() - startedAt, load: os.loadavg()[0] ?? 0, ...measured });
  };

  /** @param {number} fromMs @param {number} toMs @returns {Window} */
  const windowOf = (fromMs, toMs) => {
    const isIn = (/** @type {{ atMs: number }} */ { atMs }) => atMs >= fromMs && atMs < toMs;
    const bare = readBare(folder, startedAt).filter(isIn);
    const within = times.filter(isIn);
    const run = spreadOf(within.filter(({ isFirstTry }) => isFirstTry).map(({ ms }) => ms));
    const all = spreadOf(within.map(({ ms }) => ms));
    const alone = spreadOf(bare.map(({ ms }) => ms));
    const ratio = Number((run.p99 / (alone.p99 || 1)).toFixed(3));
    return { atMs: toMs, run, all, bare: alone, ratio };
  };

  const reportOf = (/** @type {boolean} */ isFinished) => {
    const memory = readMemory(folder, startedAt);
    const all = { seconds, samples, memory, windows, violations };
    const figures = {
      runs: archive.size,
      kills,
      passed,
      boots: sumOf(members, ({ boots }) => boots),
    };
    const head = { isFinished, seed, seconds, rate, ...rhythm, startedAt, ...figures };
    return { ...head, verdict: verdictOf(all), ...all };
  };

  let startedAt = Date.now();
  try {
    for (const each of members) each.boot();
    await waitFor("every process is ready", READY_LIMIT_MS, () =>
      members.every((each) => each.hasSaid("ready")),
    );
    startedAt = Date.now();
    const endAt = startedAt + seconds * 1_000;
    tell(`a soak of ${seconds} s, seed ${seed}; all notes are in ${folder}`);
    const draw = new Draw(`soak kills ${seed}`);
    const during = { startedAt, endAt };
    const killing = until(during, rhythm.killMs, async () => {
      const victim = mortal[draw.int(0, mortal.length - 1)];
      if (!victim?.isAble) {
        passed += 1;
        return;
      }
      victim.kill();
      kills += 1;
      await victim.gone;
      victim.boot();
    });
    const sampling = until(during, rhythm.sampleMs, sample);
    // A window is reported once its runs have ended, except for those that were lost.
    const telling = until(during, rhythm.windowMs, async () => {
      await take();
      const to = (windows.length + 1) * rhythm.windowMs;
      const window = windowOf(to - rhythm.windowMs, to);
      windows.push(window);
      const { run, bare, ratio } = window;
      tell(
        `${Math.round(to / 1_000)} s: ${archive.size} runs, ${kills} kills, p50 ${run.p50}, p99 ${run.p99} ms, bare p99 ${bare.p99} ms, ratio ${ratio}`,
      );
      onWindow(reportOf(false));
    });
    await Promise.all([killing, sampling, telling]);

    asker.tell("quiet");
    await waitFor("the asker is quiet", READY_LIMIT_MS, () => asker.hasSaid("quiet"));
    await pauseSchedules(server.url);
    /** @type {string[]} */
    let live = [];
    await waitFor("every run has ended", DRY_LIMIT_MS, async () => {
      live = await liveRuns(reader);
      return live.length === 0;
    });
    if (live.length > 0) violations.push({ check: "L", message: live.slice(0, 5).join("; ") });
    await take();
    // Once more, with the runs that were reclaimed late.
    windows.forEach(({ atMs }, at) => {
      windows[at] = windowOf(atMs - rhythm.windowMs, atMs);
    });
    for (const each of members) if (each.canStop) each.stop();
    await waitFor("every process has stopped", READY_LIMIT_MS, () =>
      members.every(({ isAlive }) => !isAlive),
    );
    const tables = await archive.whole(reader);
    const { makeWhen } = await import(
      new URL("../build/schedules/rules/when.js", import.meta.url).href
    );
    const operations = readOperations(folder);
    const history = { tables, operations, effects: readEffects(folder), makeWhen };
    const { found, duplicates } = duplicatesOf(history);
    violations.push(...judge(history), ...found, ...(await ownCheck(server.url)));
    for (const { surprises } of members)
      for (const message of surprises) violations.push({ check: "process", message });
    const deaths = new Map(members.flatMap((each) => [...each.deaths]));
    const takeovers = takeoversOf({ tables, deaths, timeline }).map(({ wallMs }) => wallMs);
    return {
      ...reportOf(true),
      endedAt: Date.now(),
      runs: tables.runs.length,
      ticks: sumOf(tables.ticks, ({ count }) => count),
      operations: operations.length,
      duplicates,
      takeovers: { ...spreadOf(takeovers), maxMs: Math.max(0, ...takeovers) },
    };
  } finally {
    onExit();
    for (const each of members) await each.gone;
    process.off("exit", onExit);
    sink.close();
    await reader.close();
    await server.stop();
    if (violations.length === 0) fs.rmSync(folder, { recursive: true, force: true });
    else tell(`all notes are in ${folder}`);
  }
}

/**
 * Repeats an action at fixed times, independent of its duration.
 * @param {{ startedAt: number, endAt: number }} during
 * @param {number} everyMs
 * @param {() => Promise<void>} act
 */
async function until({ startedAt, endAt }, everyMs, act) {
  for (let at = startedAt + everyMs; at <= endAt; at += everyMs) {
    await pause(Math.max(0, at - Date.now()));
    await act();
  }
}

/** @param {string} url */
async function prepare(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(CREATE_SOAK);
  await client.end();
}

/** @template Item @param {readonly Item[]} items @param {(item: Item) => number} of */
function sumOf(items, of) {
  return items.reduce((sum, item) => sum + of(item), 0);
}
