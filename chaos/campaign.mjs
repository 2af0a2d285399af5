// Runs one round of chaos on one database: processes work while planned faults hit them; then everything is healed,
// all work finishes, and the history is checked.

import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../scripts/postgres.mjs";
import { judge } from "./checks.mjs";
import { Member } from "./child-processes.mjs";
import { Client } from "./client.mjs";
import { createPostgresHistory, readHistory } from "./history-tables.mjs";
import { overHttp } from "./http-client.mjs";
import { declareAll, JOBS } from "./jobs.mjs";
import { Nemesis } from "./nemesis.mjs";
import { ownCheck } from "./operator.mjs";
import { makePlan, POLL_MS, ROLES } from "./plan.mjs";
import {
  operationCounts,
  rarities,
  readEffects,
  readEvents,
  readOperations,
} from "./process-notes.mjs";
import { recorded } from "./recorder.mjs";
import { replay } from "./replay.mjs";
import { SinkPlace } from "./sink-process.mjs";
import { liveRuns, lookAtTables, openReader, readTables, schedulesBehind } from "./tables.mjs";
import { duplicatesOf, lateTakeovers, takeoversOf } from "./takeovers.mjs";
import { openPlace } from "./test-database.mjs";
import { Timeline } from "./timeline.mjs";
import { OVERDUE_MAX_MS } from "./totals.mjs";

/** @typedef {import("./checks.mjs").Violation} Violation */
/** @typedef {import("./test-database.mjs").Place} Place */

/**
 * @typedef {object} Report
 * @property {"sqlite" | "postgres"} database
 * @property {number} seed
 * @property {number} seconds
 * @property {string} plan a digest of the faults and their times: equal for equal seeds
 * @property {Record<string, number>} operations requested, answered, refused, unknown, and by verb
 * @property {Record<string, number>} faults by kind; "passed" counts those that found no victim
 * @property {Record<string, number>} seen rare events
 * @property {Record<string, number>} forgiven losses that this database setup may have
 * @property {Record<string, number>} duplicates repeated effects, by their explanation
 * @property {{ wallMs: number, ableMs: number, unbrokenMs?: number, overdueMs?: number }[]} takeovers the duration of each, from the death of the holder
 * @property {ReturnType<typeof lateTakeovers>} [late] the facts about takeovers that took too long
 * @property {{ boots: number, runs: number, completed: number, failed: number, cancelled: number,
 *   ticks: number, effects: number, looks: number, replayedCommits: number }} counts
 * @property {Record<string, number>} phasesMs the duration of each step of healing
 * @property {Violation[]} violations
 * @property {string | null} folder the notes of all processes, kept if a check failed
 */

/**
 * @typedef {object} CampaignParams
 * @property {"sqlite" | "postgres"} database
 * @property {number} seconds
 * @property {number} seed
 * @property {boolean} [isPooled]
 * @property {boolean} [isRecorded] records every change of a row for the simulator's checkers
 * @property {readonly string[]} [only] the kinds of faults; all if it is left out
 * @property {number} [holdSeconds] how long one transaction stays open, from the beginning
 * @property {import("./plan.mjs").Fault[]} [plan] replaces the plan of the seed
 * @property {readonly import("./plan.mjs").Role[]} [roles] replaces all roles
 * @property {(around: { folder: string, timeline: Timeline }) => Promise<Place>} [place] replaces the usual database
 * @property {(line: string) => void} [tell]
 */

/** These limits are generous: they check liveness, they do not measure. */
const HEAL_LIMIT_MS = 300_000;
const QUIET_LIMIT_MS = 300_000;
const STOP_LIMIT_MS = 180_000;
const LOOK_EVERY_MS = 3_000;
const TELL_EVERY_MS = 5_000;

/**
 * @param {CampaignParams} params
 * @returns {Promise<Report>}
 */
export async function runCampaign(params) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-chaos-"));
  fs.writeFileSync(path.join(folder, "effects"), "");
  const timeline = new Timeline();
  const place = await (params.place ?? openPlace)({ ...params, folder, timeline });
  const sink = await new SinkPlace(path.join(folder, "effects")).open();
  const httpPort = await freePort();
  const campaign = new Campaign({ ...params, folder, place, sink, httpPort, timeline });
  try {
    const report = await campaign.run();
    if (report.violations.length === 0) fs.rmSync(folder, { recursive: true, force: true });
    return report;
  } finally {
    await campaign.end();
    sink.close();
    await place.close();
  }
}

class Campaign {
  #params;
  #plan;
  /** @type {Member[]} */
  #members;
  #nemesis;
  /** @type {any} */
  #holdfast = null;
  #looks = 0;
  /** @type {Record<string, number>} */
  #phasesMs = {};
  /** @type {Violation[]} */
  #violations = [];
  /** Ends the children if this process ends before the campaign. */
  #onExit = () => {
    for (const member of this.#members) if (member.isAlive) member.kill();
    fs.rmSync(this.#params.folder, { recursive: true, force: true });
  };

  /**
   * @param {Omit<CampaignParams, "place"> & { folder: string, place: Place, sink: SinkPlace,
   *   httpPort: number, timeline: Timeline }} params
   */
  constructor(params) {
    this.#params = params;
    this.#plan = params.plan ?? makePlan(params);
    const { seed, folder, place, sink, httpPort, timeline, roles = ROLES } = params;
    const { isRecorded = false } = params;
    const database = place.url;
    const orders = { seed, folder, database, sinkPort: sink.port, httpPort, isRecorded };
    this.#members = roles.map(
      (role, number) => new Member(number, { ...orders, role, ...place.orders }),
    );
    for (const member of this.#members)
      member.onChange = () =>
        timeline.setWorkers(
          this.#members
            .filter(({ role, isAble }) => role === "worker" && isAble)
            .map(({ name }) => name),
        );
    const { file } = place;
    this.#nemesis = new Nemesis({
      members: this.#members,
      timeline,
      sink,
      file,
      more: place.against(this.#members),
    });
    process.on("exit", this.#onExit);
  }

  /** @returns {Promise<Report>} */
  async run() {
    const { seed, seconds, folder, place, httpPort } = this.#params;
    const modules = new URL("../build/", import.meta.url).href;
    const library = await import(`${modules}index.js`);
    const { createClient } = await import(`${modules}client/index.js`);
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const database = place.url;
    const { storeFor } = await import(`${modules}store/open.js`);
    const triggers = await this.#triggers();
    this.#holdfast = new library.Holdfast(
      { database, app: "chaos", poll: POLL_MS, logger },
      {
        store: (/** @type {any} */ config, /** @type {any} */ { clock, random }) => {
          const store = storeFor({ ...config, clock, random, mayCreate: true });
          return triggers === null ? store : recorded(store, "driver", triggers);
        },
      },
    );
    if (triggers !== null) {
      // Creates the tables.
      await this.#holdfast.schedules.list({ limit: 1 });
      if (this.#params.database === "postgres")
        await createPostgresHistory(place.directUrl, triggers);
    }
    const jobs = declareAll(this.#holdfast, library, null);
    // The first process creates the tables. Then the others start, and the client has schedules to trigger.
    for (const member of this.#members) member.boot();
    await this.#waitFor("every process is ready", HEAL_LIMIT_MS, () =>
      this.#members.every((member) => member.hasSaid("ready")),
    );
    const far = overHttp(createClient({ url: `http://127.0.0.1:${httpPort}` }), Object.keys(JOBS));
    const clients = [
      { name: "driver", holdfast: this.#holdfast, jobs },
      ...(this.#members.some(({ role }) => role === "http") ? [{ name: "http", ...far }] : []),
    ].map((each) => new Client({ ...each, seed, file: `${folder}/operations-${each.name}` }));
    for (const client of clients) client.start();
    this.#tell(`${this.#plan.length} faults are planned`);
    const faults = this.#nemesis.run(this.#plan, seconds * 1_000).then(() => this.#nemesis.end());
    await Promise.all([faults, this.#keepLooking()]);
    await this.#heal(clients);
    await this.#stopAll();
    return this.#report();
  }

  /** Ends all remaining processes. */
  async end() {
    await this.#nemesis.end();
    for (const member of this.#members) {
      if (member.isAlive) member.kill();
      await member.gone;
    }
    await this.#holdfast?.stop({ grace: 0 }).catch(() => undefined);
    process.off("exit", this.#onExit);
  }

  async #keepLooking() {
    while (!this.#nemesis.isOver) {
      await this.#nemesis.lasting(LOOK_EVERY_MS);
      await this.#look().catch(() => undefined);
    }
  }

  /** A check that fails because the server is away does not count. */
  async #look() {
    const { place, database } = this.#params;
    const reader = await openReader(place.directUrl);
    try {
      this.#violations.push(...(await lookAtTables(reader, database)));
      this.#looks += 1;
    } finally {
      await reader.close();
    }
  }

  // ── afterwards ─────────────────────────────────────────────────────────────────────────────────

  /** @param {Client[]} clients */
  async #heal(clients) {
    this.#tell("the faults are over");
    // Processes that got SIGTERM may still be stopping.
    await this.#waitFor("every process is up", HEAL_LIMIT_MS, () => {
      for (const member of this.#members) {
        member.thaw();
        if (!member.isAlive) member.boot();
      }
      return this.#members.every((member) => member.hasSaid("ready") && !member.hasSaid("stopped"));
    });
    await this.#patiently("resume", () => this.#holdfast.schedules.resume("on-off"));
    const healedAt = Date.now();
    const reader = await openReader(this.#params.place.directUrl);
    try {
      let behind = ["all"];
      await this.#waitFor(
        "every schedule ticks again",
        HEAL_LIMIT_MS,
        async () => {
          behind = await schedulesBehind(reader, healedAt);
          return behind.length === 0;
        },
        () => behind,
      );
      await Promise.all(clients.map((client) => client.stop()));
      for (const member of this.#members) member.tell("quiet");
      await this.#waitFor("every client is quiet", STOP_LIMIT_MS, () =>
        this.#members.every((member) => member.hasSaid("quiet")),
      );
      const { schedules } = await this.#holdfast.schedules.list({ limit: 1_000 });
      for (const { name } of schedules)
        await this.#patiently(`pause ${name}`, () => this.#holdfast.schedules.pause(name));
      /** @type {string[]} */
      let live = [];
      await this.#waitFor(
        "every run has ended",
        // Suspect runs are executed one by one, and a longer round leaves more of them.
        QUIET_LIMIT_MS + this.#params.seconds * 1_000,
        async () => {
          live = await liveRuns(reader);
          return live.length === 0;
        },
        () => live.slice(0, 10).join("; "),
      );
    } finally {
      await reader.close();
    }
  }

  async #stopAll() {
    for (const member of this.#members) if (member.canStop) member.stop();
    await this.#waitFor("every process has stopped", STOP_LIMIT_MS, () =>
      this.#members.every((member) => !member.isAlive),
    );
    await this.#holdfast.stop({ grace: 0 });
  }

  /**
   * @param {string} what
   * @param {number} withinMs
   * @param {() => boolean | Promise<boolean>} look
   * @param {() => unknown} [left] says what is still missing
   */
  async #waitFor(what, withinMs, look, left = () => "") {
    const startedAt = performance.now();
    let toldMs = 0;
    while (!(await look())) {
      if (performance.now() > startedAt + withinMs) {
        const message = `Not within ${withinMs} ms: ${what}. ${left()}`;
        this.#violations.push({ check: "L", message });
        return;
      }
      await pause(50);
      const waitedMs = performance.now() - startedAt;
      if (waitedMs < toldMs + TELL_EVERY_MS) continue;
      toldMs = waitedMs;
      this.#tell(`still waiting after ${Math.round(waitedMs / 1_000)} s: ${what}. ${left()}`);
    }
    this.#phasesMs[what] = Math.round(performance.now() - startedAt);
  }

  /** @param {string} what @param {() => Promise<unknown>} ask */
  async #patiently(what, ask) {
    /** @type {unknown} */
    let problem;
    for (let tries = 0; tries < 5; tries += 1) {
      try {
        return await ask();
      } catch (error) {
        problem = error;
        await pause(200);
      }
    }
    this.#violations.push({ check: "L", message: `Cannot ${what}: ${problem}` });
  }

  // ── report ─────────────────────────────────────────────────────────────────────────────────────

  /** @returns {Promise<Report>} */
  async #report() {
    const { database, seed, seconds, folder, place, timeline } = this.#params;
    await this.#look();
    const reader = await openReader(place.directUrl);
    const tables = await readTables(reader);
    const operations = readOperations(folder);
    const effects = readEffects(folder);
    const replayed = await this.#replayed(reader, effects);
    await reader.close();
    const { makeWhen } = await import(
      new URL("../build/schedules/rules/when.js", import.meta.url).href
    );
    const { history, forgiven } = place.forgive({ tables, operations, effects, makeWhen });
    const { found, duplicates } = duplicatesOf(history);
    const violations = [
      ...this.#violations,
      ...judge(history),
      ...found,
      ...replayed.found,
      ...(await ownCheck(place.directUrl)),
      ...this.#surprises(),
    ];
    const ended = (/** @type {number} */ status) =>
      tables.outcomes.filter((outcome) => outcome.status === status).length;
    const deaths = new Map(this.#members.flatMap((member) => [...member.deaths]));
    const takeovers = takeoversOf({ tables, deaths, timeline });
    const events = readEvents(folder);
    const late = lateTakeovers({ takeovers, maxMs: OVERDUE_MAX_MS, timeline, events });
    return {
      database,
      seed,
      seconds,
      plan: createHash("sha256").update(JSON.stringify(this.#plan)).digest("hex").slice(0, 12),
      operations: operationCounts(operations),
      faults: this.#nemesis.counts,
      seen: {
        ...rarities(history, folder),
        chances: timeline.stretches(OVERDUE_MAX_MS),
        skewedClocks: this.#members.reduce((sum, { skews }) => sum + skews, 0),
      },
      forgiven,
      duplicates,
      takeovers: takeovers.map(({ diedAt: _, ...each }) => each),
      late,
      counts: {
        boots: this.#members.reduce((sum, { boots }) => sum + boots, 0),
        runs: tables.runs.length,
        completed: ended(1),
        failed: ended(2),
        cancelled: ended(3),
        ticks: tables.ticks.reduce((sum, { count }) => sum + count, 0),
        effects: effects.length,
        looks: this.#looks,
        replayedCommits: replayed.commits,
      },
      phasesMs: this.#phasesMs,
      violations,
      folder: violations.length === 0 ? null : folder,
    };
  }

  /** Returns the simulator's triggers, or null if nothing is recorded. @returns {Promise<string | null>} */
  async #triggers() {
    if (!this.#params.isRecorded) return null;
    const notes = new URL("../build/testing/simulator/checkers/row-changes.js", import.meta.url)
      .href;
    return (await import(notes)).noteTriggers();
  }

  /**
   * @param {import("./tables.mjs").Reader} reader
   * @param {import("./checks.mjs").Effect[]} effects
   */
  async #replayed(reader, effects) {
    const { database } = this.#params;
    const triggers = await this.#triggers();
    if (triggers === null) return { found: [], commits: 0 };
    const entries = await readHistory(reader, database, triggers);
    return { found: await replay({ entries, effects, database }), commits: entries.length };
  }

  /** Finds processes that ended by themselves, and output on stderr. */
  #surprises() {
    const { folder } = this.#params;
    /** @type {Violation[]} */
    const found = this.#members.flatMap(({ surprises }) =>
      surprises.map((message) => ({ check: "process", message })),
    );
    for (const name of fs.readdirSync(folder).filter((each) => each.startsWith("errors-"))) {
      const said = fs.readFileSync(path.join(folder, name), "utf8").trim();
      if (said !== "")
        found.push({ check: "process", message: `${name}: ${said.slice(0, 2_000)}` });
    }
    return found;
  }

  #tell(/** @type {string} */ line) {
    this.#params.tell?.(`${this.#params.database}: ${line}`);
  }
}
