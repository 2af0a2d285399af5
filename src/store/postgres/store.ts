// The store on PostgreSQL: every verb is one statement on one of two connections. `work` carries enqueues, exchanges
// and all other statements that may wait for a locked row; `beat` carries renewals and polls, and listens
// (docs/decisions/0002-two-connections.md). This file makes the object of each noun and owns the connections.

import { MigrationError } from "../../shared/errors.js";
import type { Clock } from "../../shared/ports.js";
import { AccessKeys } from "../access/keys.js";
import { Sessions } from "../access/sessions.js";
import { Audit } from "../audit.js";
import { Instances } from "../instances.js";
import { Pauses } from "../pause.js";
import { Queues } from "../queues.js";
import { Calendars } from "../schedules/calendars.js";
import { SCHEMA_VERSION } from "../schema/schema.js";
import { tooOld } from "../schema/upgrade.js";
import { Statistics } from "../statistics.js";
import type * as store from "../store.js";
import { PostgresAlerts } from "./alerts.js";
import { PostgresBatches } from "./batches.js";
import { PostgresChecks, PostgresRepairs } from "./checks.js";
import { PostgresCommits } from "./commits.js";
import { checkPool, type PostgresSource, unavailable } from "./connection/connection.js";
import { PostgresTransactions, TRANSACTIONS_MAX } from "./connection/transactions.js";
import { PostgresEnqueue } from "./enqueue.js";
import { PostgresClaims } from "./exchange.js";
import { PostgresItems } from "./items.js";
import { PostgresJobs } from "./jobs.js";
import { PostgresLeases } from "./leases.js";
import { PostgresLocks } from "./locks.js";
import { channelOf, createSchema, schemaVersion } from "./migrate.js";
import { PostgresWork } from "./poll.js";
import { PostgresLogs, PostgresProgress } from "./reports.js";
import { PostgresRetention } from "./retention.js";
import { PostgresRuns } from "./runs.js";
import { PostgresSchedules } from "./schedules.js";
import { newMutex, PostgresSession } from "./session.js";
import { PostgresSignals, PostgresSteps } from "./steps.js";

type PostgresStoreParams = {
  readonly source: PostgresSource;
  readonly schema: string;
  readonly clock: Clock;
  readonly migrate: "auto" | "check" | "off";
  /** Tests supply the database's time; production never does. */
  readonly now?: () => number;
};

export class PostgresStore implements store.Store {
  readonly engine = "postgres";
  readonly enqueue: PostgresEnqueue;
  readonly claims: PostgresClaims;
  readonly leases: PostgresLeases;
  readonly work: PostgresWork;
  readonly runs: PostgresRuns;
  readonly batches: PostgresBatches;
  readonly items: PostgresItems;
  readonly commits: PostgresCommits;
  readonly progress: PostgresProgress;
  readonly logs: PostgresLogs;
  readonly schedules: PostgresSchedules;
  readonly calendars: Calendars;
  readonly locks: PostgresLocks;
  readonly jobs: PostgresJobs;
  readonly instances: Instances;
  readonly queues: Queues;
  readonly pause: Pauses;
  readonly audit: Audit;
  readonly sessions: Sessions;
  readonly signals: PostgresSignals;
  readonly steps: PostgresSteps;
  readonly keys: AccessKeys;
  readonly statistics: Statistics;
  readonly alerts: PostgresAlerts;
  readonly checks: PostgresChecks;
  readonly repairs: PostgresRepairs;
  readonly retention: PostgresRetention;
  readonly #params: PostgresStoreParams;
  readonly #listeners: Set<store.WakeListener>;
  readonly #session: PostgresSession;
  readonly #transactions: PostgresTransactions;

  constructor(params: PostgresStoreParams) {
    const { source, schema, clock, now } = params;
    const channel = channelOf(schema);
    const listeners = new Set<store.WakeListener>();
    const onWake: store.WakeListener = (hint) => {
      for (const listener of listeners) listener(hint);
    };
    const wake = () => this.wake();
    const transactions = new PostgresTransactions({ source, clock });
    const session = new PostgresSession({
      ...{ source, schema, clock, channel, onWake, now, transactions },
    });
    const enqueue = new PostgresEnqueue({ session, transactions, channel, wake });
    const work = new PostgresWork(session);
    const rare = { session, source, clock, mutex: newMutex() };
    this.enqueue = enqueue;
    this.claims = new PostgresClaims({ session, clock, work });
    this.leases = new PostgresLeases(session, clock);
    this.work = work;
    this.runs = new PostgresRuns({ session, clock });
    this.batches = new PostgresBatches({ session, transactions, enqueue, wake });
    this.items = new PostgresItems(session);
    this.commits = new PostgresCommits({ session, source, clock });
    this.progress = new PostgresProgress(session);
    this.logs = new PostgresLogs(session);
    this.schedules = new PostgresSchedules({ session, channel, enqueue });
    this.calendars = new Calendars(session);
    this.locks = new PostgresLocks({ session, clock });
    this.jobs = new PostgresJobs(session, enqueue);
    this.instances = new Instances(session, this.jobs);
    this.queues = new Queues(session);
    this.pause = new Pauses(session);
    this.audit = new Audit(session);
    this.sessions = new Sessions(session);
    this.signals = new PostgresSignals(session, channel);
    this.steps = new PostgresSteps(session);
    this.keys = new AccessKeys(session);
    this.statistics = new Statistics(session);
    this.alerts = new PostgresAlerts(session);
    this.checks = new PostgresChecks(rare);
    this.repairs = new PostgresRepairs(rare);
    this.retention = new PostgresRetention({ ...rare, schema });
    this.#params = params;
    this.#listeners = listeners;
    this.#session = session;
    this.#transactions = transactions;
  }

  async open(): Promise<void> {
    const { source, schema, clock, migrate } = this.#params;
    const session = this.#session;
    checkPool(source);
    try {
      const found = migrate === "auto" ? await schemaVersion(session) : undefined;
      if (found === null || (found && found.version < SCHEMA_VERSION))
        await createSchema({ session, source, clock, schema });
      const version = await schemaVersion(session);
      if (version && version.version < SCHEMA_VERSION)
        throw new MigrationError(tooOld(version.version, SCHEMA_VERSION), version.version);
      if (version === null || version.minCompatible > SCHEMA_VERSION) {
        throw new MigrationError(
          version === null
            ? `The schema "${schema}" has no Holdfast tables; run \`holdfast migrate\` or set migrate: "auto".`
            : `The tables are of version ${version.version} and need a newer Holdfast; this one knows version ${SCHEMA_VERSION}.`,
          version?.version ?? null,
        );
      }
      if (migrate === "auto") await this.retention.makeDays();
    } catch (error) {
      if (error instanceof MigrationError) throw error;
      throw unavailable(source, error);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#session.close(), this.#transactions.close(), this.commits.close()]);
  }

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    const text = `notify "${channelOf(this.#params.schema)}"`;
    this.#session.work.query({ text }).catch(() => undefined);
  }

  /** Work and beat, users' transactions, our own transactions, and one for rare work: days, checks, repairs. */
  get connectionsMax(): number {
    const { source } = this.#params;
    const { workMax, transactionsMax } = this.load;
    const wanted = workMax + transactionsMax + TRANSACTIONS_MAX + 1;
    const { max } = typeof source === "string" ? { max: wanted } : source.options;
    return Math.min(wanted, max ?? wanted);
  }

  get load(): store.Store["load"] {
    const links = [this.#session.work, this.#session.beat];
    const { open, max, waiting } = this.commits.load;
    return {
      statements: links.reduce((sum, { inFlight }) => sum + inFlight, 0),
      work: links.filter(({ isConnected }) => isConnected).length,
      workMax: links.length,
      transactions: open,
      transactionsMax: max,
      waiting,
    };
  }
}
