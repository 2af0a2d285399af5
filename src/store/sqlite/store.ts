// The store on SQLite: every verb is one short write transaction, so its decisions and its writes cannot interleave
// with another's. Where PostgreSQL decides inside a statement, these files decide between two statements, with the same
// pure functions that the engine uses. This file makes the object of each noun and owns the file.

import type { Clock, Random } from "../../shared/ports.js";
import { AccessKeys } from "../access/keys.js";
import { Sessions } from "../access/sessions.js";
import { Audit } from "../audit.js";
import { Instances } from "../instances.js";
import { Pauses } from "../pause.js";
import { Queues } from "../queues.js";
import { Calendars } from "../schedules/calendars.js";
import type { Dialect } from "../sql/template.js";
import { Statistics } from "../statistics.js";
import type * as store from "../store.js";
import { SqliteAlerts } from "./alerts.js";
import { SqliteBatches } from "./batches.js";
import { SqliteChecks, SqliteRepairs } from "./checks.js";
import { SqliteCommits } from "./commits.js";
import { SqliteFile } from "./connection/connection.js";
import type { SqliteHandle, SqliteSource } from "./connection/handle.js";
import { SqliteEnqueue } from "./enqueue.js";
import { SqliteClaims } from "./exchange.js";
import { SqliteItems } from "./items.js";
import { SqliteJobs } from "./jobs.js";
import { LeaseRows } from "./lease-rows.js";
import { SqliteLeases } from "./leases.js";
import { SqliteLimits } from "./limits.js";
import { SqliteLocks } from "./locks.js";
import { migrateSqlite } from "./migrate.js";
import { SqliteWork } from "./poll.js";
import { SqliteLogs, SqliteProgress } from "./reports.js";
import { SqliteRetention } from "./retention.js";
import { SqliteRuns } from "./runs.js";
import { SqliteSchedules } from "./schedules.js";
import { SqliteSession } from "./session.js";
import { SqliteSignals, SqliteSteps } from "./steps.js";

export const SQLITE_DIALECT: Dialect = {
  // The public views have the names that they have on PostgreSQL, which has a schema for them.
  name: (plain) => (plain.startsWith("v_") ? plain : `holdfast_${plain}`),
  now: "cast(unixepoch('subsec') * 1000 as integer)",
};

type SqliteStoreParams = {
  readonly source: SqliteSource;
  readonly clock: Clock;
  readonly random: Random;
  readonly synchronous: "FULL" | "NORMAL";
  readonly migrate: "auto" | "check" | "off";
  readonly mayCreate: boolean;
  /** Tests and the simulator supply the database's time; production never does. */
  readonly now?: () => number;
};

export class SqliteStore implements store.Store {
  readonly engine = "sqlite";
  readonly enqueue: SqliteEnqueue;
  readonly claims: SqliteClaims;
  readonly leases: SqliteLeases;
  readonly work: SqliteWork;
  readonly runs: SqliteRuns;
  readonly batches: SqliteBatches;
  readonly items: SqliteItems;
  readonly commits: SqliteCommits;
  readonly progress: SqliteProgress;
  readonly logs: SqliteLogs;
  readonly schedules: SqliteSchedules;
  readonly calendars: Calendars;
  readonly locks: SqliteLocks;
  readonly jobs: SqliteJobs;
  readonly instances: Instances;
  readonly queues: Queues;
  readonly pause: Pauses;
  readonly audit: Audit;
  readonly sessions: Sessions;
  readonly signals: SqliteSignals;
  readonly steps: SqliteSteps;
  readonly keys: AccessKeys;
  readonly statistics: Statistics;
  readonly alerts: SqliteAlerts;
  readonly checks: SqliteChecks;
  readonly repairs: SqliteRepairs;
  readonly retention: SqliteRetention;
  /** One for everything, and one while a check reads its snapshot. */
  readonly connectionsMax = 2;
  /** One handle, which does one thing at a time. */
  readonly load: store.Store["load"] = {
    statements: 0,
    work: 1,
    workMax: 1,
    transactions: 0,
    transactionsMax: 1,
    waiting: 0,
  };
  readonly #migrate: "auto" | "check" | "off";
  readonly #listeners = new Set<store.WakeListener>();
  readonly #session: SqliteSession;

  constructor(params: SqliteStoreParams) {
    const { clock, now } = params;
    const file = new SqliteFile({ ...params, dialect: SQLITE_DIALECT });
    const session = new SqliteSession({ file, now });
    const limits = new SqliteLimits(file);
    const leases = new LeaseRows(file, limits);
    const enqueue = new SqliteEnqueue(session, limits);
    const items = new SqliteItems(session, leases);
    this.enqueue = enqueue;
    this.claims = new SqliteClaims({ session, leases });
    this.leases = new SqliteLeases(session, leases);
    this.work = new SqliteWork(session, limits);
    this.runs = new SqliteRuns({ session, leases, limits });
    this.batches = new SqliteBatches({ session, enqueue, leases, limits });
    this.items = items;
    this.commits = new SqliteCommits({ session, leases, items });
    this.progress = new SqliteProgress(session, leases);
    this.logs = new SqliteLogs(session, leases);
    this.schedules = new SqliteSchedules({ session, enqueue, leases, limits });
    this.calendars = new Calendars(session);
    this.locks = new SqliteLocks(session);
    this.jobs = new SqliteJobs({ session, enqueue, limits });
    this.instances = new Instances(session, this.jobs);
    this.queues = new Queues(session);
    this.pause = new Pauses(session);
    this.audit = new Audit(session);
    this.sessions = new Sessions(session);
    this.signals = new SqliteSignals(session);
    this.steps = new SqliteSteps(session, leases);
    this.keys = new AccessKeys(session);
    this.statistics = new Statistics(session);
    this.alerts = new SqliteAlerts(session);
    this.checks = new SqliteChecks({ file, clock, dialect: SQLITE_DIALECT, now });
    this.repairs = new SqliteRepairs(session);
    this.retention = new SqliteRetention({ session, limits });
    this.#migrate = params.migrate;
    this.#session = session;
  }

  async open(): Promise<void> {
    const { file } = this.#session;
    await file.open();
    await migrateSqlite({
      file,
      dialect: SQLITE_DIALECT,
      migrate: this.#migrate,
      now: () => this.#session.now(),
    });
  }

  async close(options?: { readonly releasesFiles: boolean }): Promise<void> {
    await this.#session.file.close(options);
  }

  /** For code that shares this database with us: the test kit gives it to the application under test. */
  get handle(): SqliteHandle {
    return this.#session.file.handle;
  }

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    void this.#session.file.watch(() => {
      for (const each of this.#listeners) each({ isOwn: false });
    });
    return () => this.#listeners.delete(listener);
  }

  /** Other processes notice the write itself. */
  wake(): void {}
}
