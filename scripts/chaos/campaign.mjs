// One campaign on one database: processes work while faults happen to them by plan; then all is healed,
// the work runs dry, and the history is judged.

import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { startPostgres } from "../postgres.mjs";
import { judge } from "./checks.mjs";
import { Client } from "./client.mjs";
import { Member } from "./crew.mjs";
import { declareAll } from "./jobs.mjs";
import { operationCounts, rarities, readEffects, readOperations } from "./notes.mjs";
import { LEASE_MIN_MS, makePlan, WORKERS } from "./plan.mjs";
import { liveRuns, lookAtTables, openReader, readTables, schedulesBehind } from "./tables.mjs";

/** @typedef {import("./checks.mjs").Violation} Violation */
/** @typedef {import("./plan.mjs").Fault} Fault */
/** @typedef {import("../postgres.mjs").PostgresServer} PostgresServer */

/**
 * @typedef {object} Report
 * @property {"sqlite" | "postgres"} database
 * @property {number} seed
 * @property {number} seconds
 * @property {string} plan names the faults and their times: equal for equal seeds
 * @property {Record<string, number>} operations asked, answered, refused, unknown, and by verb
 * @property {{ kills: number, freezes: number, longFreezes: number, stops: number, cuts: number,
 *   crashes: number, passed: number }} faults passed: there was nobody to whom it could be done
 * @property {Record<string, number>} seen rare things that happened
 * @property {{ boots: number, runs: number, completed: number, failed: number, cancelled: number,
 *   ticks: number, effects: number, looks: number }} counts
 * @property {Record<string, number>} phasesMs how long healing took, step by step
 * @property {Violation[]} violations
 * @property {string | null} folder what was noted, kept where something was violated
 */

/** Generous: these are limits of a liveness promise, not measurements. */
const HEAL_LIMIT_MS = 90_000;
const QUIET_LIMIT_MS = 120_000;
const STOP_LIMIT_MS = 60_000;
const LOOK_EVERY_MS = 3_000;
const TELL_EVERY_MS = 5_000;

/**
 * @param {{ database: "sqlite" | "postgres", seconds: number, seed: number,
 *   tell?: (line: string) => void }} params
 * @returns {Promise<Report>}
 */
export async function runCampaign(params) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-chaos-"));
  fs.writeFileSync(path.join(folder, "effects"), "");
  const server = params.database === "postgres" ? await startPostgres() : null;
  const url = server?.url ?? `sqlite:${path.join(folder, "holdfast.db")}`;
  const campaign = new Campaign({ ...params, folder, url, server });
  try {
    const report = await campaign.run();
    if (report.violations.length === 0) fs.rmSync(folder, { recursive: true, force: true });
    return report;
  } finally {
    await campaign.end();
    await server?.stop();
  }
}

class Campaign {
  #params;
  #plan;
  /** @type {Member[]} */
  #crew;
  /** @type {any} */
  #holdfast = null;
  #faults = { kills: 0, freezes: 0, longFreezes: 0, stops: 0, cuts: 0, crashes: 0, passed: 0 };
  #looks = 0;
  /** @type {Record<string, number>} */
  #phasesMs = {};
  #isHealing = false;
  /** @type {Promise<unknown>[]} what ends by itself a little later: thaws and boots */
  #pending = [];
  /** @type {Violation[]} */
  #violations = [];
  /** Where somebody ends this process before the campaign has ended. */
  #onExit = () => {
    for (const member of this.#crew) if (member.isAlive) member.kill();
    fs.rmSync(this.#params.folder, { recursive: true, force: true });
  };

  /**
   * @param {{ database: "sqlite" | "postgres", seconds: number, seed: number, folder: string,
   *   url: string, server: PostgresServer | null, tell?: (line: string) => void }} params
   */
  constructor(params) {
    this.#params = params;
    this.#plan = makePlan(params);
    const { seed, folder, url: database } = params;
    this.#crew = Array.from(
      { length: WORKERS },
      (_, number) => new Member(number, { seed, folder, database }),
    );
    process.on("exit", this.#onExit);
  }

  /** @returns {Promise<Report>} */
  async run() {
    const { url, seed, folder } = this.#params;
    const library = await import(new URL("../../dist/index.js", import.meta.url).href);
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    this.#holdfast = new library.Holdfast({ database: url, app: "chaos", poll: "200ms", logger });
    const jobs = declareAll(this.#holdfast, library, null);
    // The first one makes the tables; then the others come, and the client has schedules to trigger.
    for (const member of this.#crew) member.boot();
    await this.#waitFor("every process is ready", HEAL_LIMIT_MS, () =>
      this.#crew.every((member) => member.hasSaid("ready")),
    );
    const file = `${folder}/operations-driver`;
    const client = new Client({ name: "driver", seed, holdfast: this.#holdfast, jobs, file });
    client.start();
    this.#tell(`${this.#plan.length} faults to come`);
    await Promise.all([this.#doFaults(), this.#keepLooking()]);
    await this.#heal(client);
    await this.#stopAll();
    return this.#report();
  }

  /** Ends whatever is left. */
  async end() {
    this.#isHealing = true;
    for (const member of this.#crew) {
      if (member.isAlive) member.kill();
      await member.gone;
    }
    await Promise.all(this.#pending);
    await this.#holdfast?.stop({ grace: 0 }).catch(() => undefined);
    process.off("exit", this.#onExit);
  }

  // ── faults ─────────────────────────────────────────────────────────────────────────────────────

  async #doFaults() {
    const startedAt = performance.now();
    for (const fault of this.#plan) {
      await pause(Math.max(0, startedAt + fault.atMs - performance.now()));
      if (!(await this.#do(fault))) this.#faults.passed += 1;
    }
    await pause(Math.max(0, startedAt + this.#params.seconds * 1_000 - performance.now()));
    this.#isHealing = true;
  }

  /**
   * @param {Fault} fault
   * @returns {Promise<boolean>} whether there was somebody to whom it could be done
   */
  async #do({ kind, victim: number, forMs, isForAll }) {
    if (kind === "cut") return this.#cut(number, isForAll);
    if (kind === "crash") {
      await this.#params.server?.restart("immediate");
      this.#faults.crashes += 1;
      return true;
    }
    const able = this.#crew.filter((member) => {
      if (kind === "stop") return member.canStop && !member.isFrozen;
      return member.isAlive && (kind === "kill" || !member.isFrozen);
    });
    const first = number % Math.max(1, able.length);
    const victims = isForAll ? able : able.slice(first, first + 1);
    for (const victim of victims) this.#harm(victim, kind, forMs);
    return victims.length > 0;
  }

  /**
   * @param {Member} victim
   * @param {"kill" | "stop" | "freeze"} kind
   * @param {number} forMs
   */
  #harm(victim, kind, forMs) {
    if (kind === "freeze") {
      victim.freeze();
      this.#faults.freezes += 1;
      if (forMs > LEASE_MIN_MS) this.#faults.longFreezes += 1;
      this.#pending.push(this.#thawLater(victim, forMs));
      return;
    }
    if (kind === "kill") victim.kill();
    else victim.stop();
    this.#faults[kind === "kill" ? "kills" : "stops"] += 1;
    this.#pending.push(victim.gone.then(() => this.#bootLater(victim, forMs)));
  }

  async #bootLater(/** @type {Member} */ member, /** @type {number} */ afterMs) {
    await this.#pauseWhileFaulty(afterMs);
    if (!this.#isHealing) member.boot();
  }

  async #thawLater(/** @type {Member} */ member, /** @type {number} */ afterMs) {
    const { boots } = member;
    await this.#pauseWhileFaulty(afterMs);
    if (member.boots === boots) member.thaw();
  }

  async #pauseWhileFaulty(/** @type {number} */ ms) {
    const until = performance.now() + ms;
    while (!this.#isHealing && performance.now() < until)
      await pause(Math.min(100, Math.max(1, until - performance.now())));
  }

  /** Ends the sessions of the library, in the middle of whatever they are doing. */
  async #cut(/** @type {number} */ number, /** @type {boolean} */ isForAll) {
    const client = new pg.Client({ connectionString: this.#params.url, application_name: "chaos" });
    client.on("error", () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query(
        "select pid from pg_stat_activity where application_name = 'holdfast' order by pid",
      );
      const pids = rows.map(({ pid }) => pid);
      const cut = isForAll ? pids : pids.slice(number % Math.max(1, pids.length)).slice(0, 1);
      await client.query("select pg_terminate_backend(pid) from unnest($1::int[]) pid", [cut]);
      this.#faults.cuts += cut.length;
      return cut.length > 0;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  async #keepLooking() {
    while (!this.#isHealing) {
      await this.#pauseWhileFaulty(LOOK_EVERY_MS);
      await this.#look().catch(() => undefined);
    }
  }

  /** A look that fails because the server is away is no look. */
  async #look() {
    const { url, database } = this.#params;
    const reader = await openReader(url);
    try {
      this.#violations.push(...(await lookAtTables(reader, database)));
      this.#looks += 1;
    } finally {
      await reader.close();
    }
  }

  // ── afterwards ─────────────────────────────────────────────────────────────────────────────────

  /** @param {Client} client */
  async #heal(client) {
    this.#tell("the faults are over");
    await Promise.all(this.#pending.splice(0));
    // Those who were asked to stop may still be at it.
    await this.#waitFor("every process is up", HEAL_LIMIT_MS, () => {
      for (const member of this.#crew) {
        member.thaw();
        if (!member.isAlive) member.boot();
      }
      return this.#crew.every((member) => member.hasSaid("ready") && !member.hasSaid("stopped"));
    });
    await this.#patiently("resume", () => this.#holdfast.schedules.resume("on-off"));
    const healedAt = Date.now();
    const reader = await openReader(this.#params.url);
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
      await client.stop();
      for (const member of this.#crew) member.quieten();
      await this.#waitFor("every client is quiet", STOP_LIMIT_MS, () =>
        this.#crew.every((member) => member.hasSaid("quiet")),
      );
      const { schedules } = await this.#holdfast.schedules.list({ limit: 1_000 });
      for (const { name } of schedules)
        await this.#patiently(`pause ${name}`, () => this.#holdfast.schedules.pause(name));
      /** @type {string[]} */
      let live = [];
      await this.#waitFor(
        "every run has ended",
        // Runs that were lost before are executed one by one, and the longer it went on the more there are.
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
    for (const member of this.#crew) if (member.canStop) member.stop();
    await this.#waitFor("every process has stopped", STOP_LIMIT_MS, () =>
      this.#crew.every((member) => !member.isAlive),
    );
    await this.#holdfast.stop({ grace: 0 });
  }

  /**
   * @param {string} what
   * @param {number} withinMs
   * @param {() => boolean | Promise<boolean>} look
   * @param {() => unknown} [left] what it still waits for
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
      this.#tell(`after ${Math.round(waitedMs / 1_000)} s not yet: ${what}. ${left()}`);
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
    const { database, seed, seconds, folder, url } = this.#params;
    await this.#look();
    const reader = await openReader(url);
    const tables = await readTables(reader);
    await reader.close();
    const operations = readOperations(folder);
    const effects = readEffects(folder);
    const { makeWhen } = await import(new URL("../../dist/core/when.js", import.meta.url).href);
    const violations = [
      ...this.#violations,
      ...judge({ tables, operations, effects, makeWhen }),
      ...this.#surprises(),
    ];
    const ended = (/** @type {number} */ status) =>
      tables.outcomes.filter((outcome) => outcome.status === status).length;
    return {
      database,
      seed,
      seconds,
      plan: createHash("sha256").update(JSON.stringify(this.#plan)).digest("hex").slice(0, 12),
      operations: operationCounts(operations),
      faults: this.#faults,
      seen: rarities({ tables, operations, effects }, folder),
      counts: {
        boots: this.#crew.reduce((sum, { boots }) => sum + boots, 0),
        runs: tables.runs.length,
        completed: ended(1),
        failed: ended(2),
        cancelled: ended(3),
        ticks: tables.ticks.reduce((sum, { count }) => sum + count, 0),
        effects: effects.length,
        looks: this.#looks,
      },
      phasesMs: this.#phasesMs,
      violations,
      folder: violations.length === 0 ? null : folder,
    };
  }

  /** Processes that ended unasked, and anything that was written to stderr. */
  #surprises() {
    const { folder } = this.#params;
    /** @type {Violation[]} */
    const found = this.#crew.flatMap(({ surprises }) =>
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
