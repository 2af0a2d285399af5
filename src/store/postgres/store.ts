// The store on PostgreSQL: every verb is one statement on one of two connections. `work` carries
// enqueues, exchanges and whatever may wait for a row that somebody has locked, `beat` renewals and polls,
// and listens (docs/decisions/0002-two-connections.md). Here is what it is made of; who keeps which verb is in
// store-of-parts.ts, and how in the file of each part.

import { MigrationError } from "../../shared/errors.js";
import type { Clock } from "../../shared/ports.js";
import type * as store from "../store.js";
import { StoreOfParts } from "../store-of-parts.js";
import { PostgresAccess } from "./access.js";
import { PostgresAlerts } from "./alerts.js";
import { PostgresAudit } from "./audit.js";
import { PostgresBatches } from "./batches.js";
import { PostgresChecks } from "./checks.js";
import { checkPool, type PostgresSource, unavailable } from "./connection.js";
import { PostgresEnqueue } from "./enqueue.js";
import { PostgresExchange } from "./exchange.js";
import { PostgresFigures } from "./figures.js";
import { PostgresInstances } from "./instances.js";
import { PostgresItems } from "./items.js";
import { PostgresLeases } from "./leases.js";
import { PostgresLocks } from "./locks.js";
import { PostgresLogs } from "./logs.js";
import { channelOf, createSchema, schemaVersion } from "./migrate.js";
import { newSemaphore } from "./mutex.js";
import { PostgresOperators } from "./operators.js";
import { PostgresPause } from "./pause.js";
import { PostgresPoll } from "./poll.js";
import { PostgresProgress } from "./progress.js";
import { PostgresRepairs } from "./repairs.js";
import { PostgresRetention } from "./retention.js";
import { PostgresRuns } from "./runs.js";
import { PostgresSchedules } from "./schedules.js";
import { SCHEMA_VERSION } from "./schema/schema.js";
import { PostgresSession } from "./session.js";
import { PostgresTransactions, TRANSACTIONS_MAX } from "./transactions.js";
import { PostgresWithin } from "./within.js";

export type PostgresStoreParams = {
  readonly source: PostgresSource;
  readonly schema: string;
  readonly clock: Clock;
  readonly migrate: "auto" | "check" | "off";
  /** Tests supply the database's time; production never does. */
  readonly now?: () => number;
};

export class PostgresStore extends StoreOfParts {
  readonly engine = "postgres";
  readonly #params: PostgresStoreParams;
  readonly #listeners: Set<store.WakeListener>;
  readonly #asker: PostgresSession;
  readonly #transactions: PostgresTransactions;
  readonly #items: PostgresItems;
  readonly #retention: PostgresRetention;

  constructor(params: PostgresStoreParams) {
    const { source, schema, clock, now } = params;
    const channel = channelOf(schema);
    const listeners = new Set<store.WakeListener>();
    const onNotice = (from: number) => {
      const isOwn = asker.work.serverPid === from || asker.beat.serverPid === from;
      for (const listener of listeners) listener({ isOwn });
    };
    const wake = () => this.wake();
    const asker = new PostgresSession({ source, schema, clock, channel, onNotice, now });
    const transactions = new PostgresTransactions({ source, clock });
    const enqueue = new PostgresEnqueue({ asker, transactions, channel, wake });
    const audit = new PostgresAudit(asker, transactions);
    const access = new PostgresAccess(asker, audit);
    const poll = new PostgresPoll(asker);
    const items = new PostgresItems({ asker, source, clock });
    const rare = { asker, source, clock, inTurn: newSemaphore() };
    const retention = new PostgresRetention({ ...rare, schema, audit, access });
    super({
      enqueue,
      within: new PostgresWithin({ asker, enqueue }),
      exchange: new PostgresExchange({ asker, clock, poll }),
      leases: new PostgresLeases(asker),
      poll,
      runs: new PostgresRuns({ asker, clock, audit }),
      batches: new PostgresBatches({ asker, transactions, enqueue, wake, audit }),
      items,
      progress: new PostgresProgress(asker),
      logs: new PostgresLogs(asker),
      schedules: new PostgresSchedules({ asker, transactions, channel, enqueue, audit }),
      locks: new PostgresLocks({ asker, clock, audit }),
      instances: new PostgresInstances({ asker, enqueue }),
      pause: new PostgresPause(asker, audit),
      audit,
      access,
      operators: new PostgresOperators(asker),
      figures: new PostgresFigures(asker),
      alerts: new PostgresAlerts({ asker, transactions, audit }),
      checks: new PostgresChecks(rare),
      repairs: new PostgresRepairs(rare),
      retention,
    });
    this.#params = params;
    this.#listeners = listeners;
    this.#asker = asker;
    this.#transactions = transactions;
    this.#items = items;
    this.#retention = retention;
  }

  async open(): Promise<void> {
    const { source, schema, clock, migrate } = this.#params;
    const asker = this.#asker;
    checkPool(source);
    try {
      const found = migrate === "auto" ? await schemaVersion(asker) : undefined;
      if (found === null || (found && found.version < SCHEMA_VERSION))
        await createSchema({ asker, source, clock, schema });
      const version = await schemaVersion(asker);
      if (version === null || version.minCompatible > SCHEMA_VERSION) {
        throw new MigrationError(
          version === null
            ? `The schema "${schema}" has no Holdfast tables; run \`holdfast migrate\` or set migrate: "auto".`
            : `The tables are of version ${version.version} and need a newer Holdfast; this one knows version ${SCHEMA_VERSION}.`,
          version?.version ?? null,
        );
      }
      if (migrate === "auto") await this.#retention.makeDays();
    } catch (error) {
      if (error instanceof MigrationError) throw error;
      throw unavailable(source, error);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#asker.close(), this.#transactions.close(), this.#items.close()]);
  }

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    const text = `notify "${channelOf(this.#params.schema)}"`;
    this.#asker.work.query({ text }).catch(() => undefined);
  }

  /** Work and beat, transactions of users, our own, and one for what is rare: days, checks, repairs. */
  get connectionsMax(): number {
    const { source } = this.#params;
    const { workMax, transactionsMax } = this.load;
    const wanted = workMax + transactionsMax + TRANSACTIONS_MAX + 1;
    const { max } = typeof source === "string" ? { max: wanted } : source.options;
    return Math.min(wanted, max ?? wanted);
  }

  get load(): store.Store["load"] {
    const links = [this.#asker.work, this.#asker.beat];
    const { open, max, waiting } = this.#items.load;
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
