// Mending and going on after a restored backup, on PostgreSQL. Whoever would claim, settle or fire waits
// for the length of one short transaction, so that nothing moves while it is counted.

import type { Clock } from "../../shared/ports.js";
import {
  type Mended,
  type Remains,
  type RepairStore,
  statementsFor,
  toRemains,
  toVitals,
  type Vitals,
} from "../repairs.js";
import { STRANGERS } from "../sql/checks.js";
import * as sql from "../sql/recovery.js";
import { fillIn } from "../sql/template.js";
import { type PlainLink, type PostgresSource, plainLink } from "./connection.js";
import type { InTurn } from "./mutex.js";
import { PIN_TRANSACTION } from "./pinned.js";
import type { PostgresSession } from "./session.js";

const TIMEOUT_MS = 600_000;
const STILL =
  "lock table {ready}, {waiting}, {lease}, {outcome}, {schedule}, {flow}, {batch} in share row exclusive mode";

type Row = Record<string, unknown>;
type Change = (template: string, params?: Row) => Promise<number>;

export class PostgresRepairs implements RepairStore {
  readonly #asker: PostgresSession;
  readonly #source: PostgresSource;
  readonly #clock: Clock;
  readonly #inTurn: InTurn;

  constructor(params: {
    readonly asker: PostgresSession;
    readonly source: PostgresSource;
    readonly clock: Clock;
    readonly inTurn: InTurn;
  }) {
    this.#asker = params.asker;
    this.#source = params.source;
    this.#clock = params.clock;
    this.#inTurn = params.inTurn;
  }

  async mend({ checks }: { readonly checks: readonly string[] }): Promise<readonly Mended[]> {
    return this.#whileStill("repair", async (change) => {
      const mended: Mended[] = [];
      for (const name of checks) {
        let changed = 0;
        for (const statement of statementsFor(name, "postgres")) changed += await change(statement);
        mended.push({ name, changed });
      }
      return mended;
    });
  }

  async remains(): Promise<Remains> {
    const [gone = {}] = await this.#asker.repeat("recover", sql.GONE, {});
    return toRemains(gone, await this.#asker.repeat("recover", sql.WAITING_BY_JOB, {}));
  }

  async recover({ jump }: { readonly jump: number }): Promise<{
    readonly leases: number;
    readonly locks: number;
  }> {
    return this.#whileStill("recover", async (change) => {
      for (const statement of sql.RAISE_FENCES.postgres) await change(statement, { jump });
      await change(sql.END_SESSIONS);
      return {
        leases: await change(sql.FREE_LEASES),
        locks: await change(sql.FREE_LOCKS.postgres),
      };
    });
  }

  async vitals(params: Parameters<RepairStore["vitals"]>[0]): Promise<Vitals> {
    const [row = {}] = await this.#asker.repeat("health", sql.VITALS, params);
    return toVitals(row);
  }

  async strangers(): Promise<readonly string[]> {
    const rows = await this.#asker.repeat("strangers", STRANGERS, {});
    return rows.map(({ what }) => String(what));
  }

  async #whileStill<T>(what: string, work: (change: Change) => Promise<T>): Promise<T> {
    return this.#inTurn(() => this.#asker.described(what, () => this.#still(work)));
  }

  async #still<T>(work: (change: Change) => Promise<T>): Promise<T> {
    const link = await plainLink(this.#source, this.#clock);
    try {
      await link.query({ text: `begin; ${PIN_TRANSACTION}; set local lock_timeout = '20s'` });
      await link.query({ text: fillIn(STILL, this.#asker.dialect) });
      const value = await work((template, params = {}) => this.#change(link, template, params));
      await link.query({ text: "commit" });
      return value;
    } finally {
      await link.end();
    }
  }

  /** How many rows it changed. */
  async #change(link: PlainLink, template: string, params: Row): Promise<number> {
    let changed = 0;
    const send = async (text: string, values: readonly unknown[]) => {
      const { rows, rowCount } = await link.query({ text, values, timeoutMs: TIMEOUT_MS });
      changed = rowCount;
      return rows;
    };
    await this.#asker.within(send, template, params);
    return changed;
  }
}
