// The store on SQLite: every verb is one short write transaction, so its decisions and its writes cannot be
// interleaved with another's. Where PostgreSQL decides inside a statement, the parts decide in between, with
// the same pure functions that the engine uses. Here is what it is made of; who keeps which verb is in
// store-of-parts.ts, and how in the file of each part.

import type { Clock, Random } from "../../shared/ports.js";
import type { Dialect } from "../sql/template.js";
import type * as store from "../store.js";
import { StoreOfParts } from "../store-of-parts.js";
import { SqliteAccess } from "./access.js";
import { SqliteAlerts } from "./alerts.js";
import { SqliteAudit } from "./audit.js";
import { SqliteBatches } from "./batches.js";
import { SqliteChecks } from "./checks.js";
import { SqliteFile, type SqliteHandle, type SqliteSource } from "./connection.js";
import { SqliteEnqueue } from "./enqueue.js";
import { SqliteExchange } from "./exchange.js";
import { SqliteFigures } from "./figures.js";
import { SqliteLimits } from "./flow.js";
import { SqliteHolding } from "./holding.js";
import { SqliteInstances } from "./instances.js";
import { SqliteItems } from "./items.js";
import { SqliteLeases } from "./leases.js";
import { SqliteLocks } from "./locks.js";
import { SqliteLogs } from "./logs.js";
import { migrateSqlite } from "./migrate.js";
import { SqliteOperators } from "./operators.js";
import { SqlitePause } from "./pause.js";
import { SqlitePoll } from "./poll.js";
import { SqliteProgress } from "./progress.js";
import { SqliteRepairs } from "./repairs.js";
import { SqliteRetention } from "./retention.js";
import { SqliteRuns } from "./runs.js";
import { SqliteSchedules } from "./schedules.js";
import { SqliteSession } from "./session.js";
import { SqliteWithin } from "./within.js";

export const SQLITE_DIALECT: Dialect = {
  // The public views have the names of the other engine's, which has a schema for them.
  name: (plain) => (plain.startsWith("v_") ? plain : `holdfast_${plain}`),
  now: "cast(unixepoch('subsec') * 1000 as integer)",
};

export type SqliteStoreParams = {
  readonly source: SqliteSource;
  readonly clock: Clock;
  readonly chance: Random;
  readonly synchronous: "FULL" | "NORMAL";
  readonly migrate: "auto" | "check" | "off";
  readonly mayCreate: boolean;
  /** Tests and the simulator supply the database's time; production never does. */
  readonly now?: () => number;
};

export class SqliteStore extends StoreOfParts {
  readonly engine = "sqlite";
  /** One for everything, and one while a check reads its snapshot. */
  readonly connectionsMax = 2;
  /** One handle, on which one thing is done at a time. */
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
  readonly #asker: SqliteSession;

  constructor(params: SqliteStoreParams) {
    const { clock, now } = params;
    const file = new SqliteFile({ ...params, dialect: SQLITE_DIALECT });
    const asker = new SqliteSession({ file, now });
    const flow = new SqliteLimits(file);
    const leases = new SqliteLeases(file, flow);
    const enqueue = new SqliteEnqueue(asker, flow);
    const audit = new SqliteAudit(asker);
    const access = new SqliteAccess(asker, audit);
    const pause = new SqlitePause(file, audit);
    const alerts = new SqliteAlerts(asker, audit);
    super({
      enqueue,
      within: new SqliteWithin({ asker, enqueue }),
      exchange: new SqliteExchange({ asker, leases, pause }),
      leases: new SqliteHolding(asker, leases),
      poll: new SqlitePoll(asker, flow),
      runs: new SqliteRuns({ asker, leases, flow, audit }),
      batches: new SqliteBatches({ asker, enqueue, leases, flow, audit }),
      items: new SqliteItems(asker, leases),
      progress: new SqliteProgress(asker, leases),
      logs: new SqliteLogs(asker, leases),
      schedules: new SqliteSchedules({ asker, enqueue, leases, flow, pause, audit }),
      locks: new SqliteLocks(asker, audit),
      instances: new SqliteInstances({ asker, enqueue, flow }),
      pause,
      audit,
      access,
      operators: new SqliteOperators(asker),
      figures: new SqliteFigures(asker),
      alerts,
      checks: new SqliteChecks({ file, clock, dialect: SQLITE_DIALECT, now }),
      repairs: new SqliteRepairs(asker),
      retention: new SqliteRetention({ asker, flow, alerts, pause, audit, access }),
    });
    this.#migrate = params.migrate;
    this.#asker = asker;
  }

  async open(): Promise<void> {
    const { file } = this.#asker;
    await file.open();
    await migrateSqlite({
      file,
      dialect: SQLITE_DIALECT,
      migrate: this.#migrate,
      now: () => this.#asker.now(),
    });
  }

  async close(options?: { readonly releasesFiles: boolean }): Promise<void> {
    await this.#asker.file.close(options);
  }

  /** For what shares this database with us: the test kit gives it to the application under test. */
  get handle(): SqliteHandle {
    return this.#asker.file.handle;
  }

  onWake(listener: store.WakeListener): () => void {
    this.#listeners.add(listener);
    void this.#asker.file.watch(() => {
      for (const each of this.#listeners) each({ isOwn: false });
    });
    return () => this.#listeners.delete(listener);
  }

  /** The write itself is what other processes notice. */
  wake(): void {}
}
