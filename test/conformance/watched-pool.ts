// A pool of real connections that records the statements sent over them, and can lose a reply after the server has sent
// it, like a cut cable.

import type { Socket } from "node:net";
import pg from "pg";
import { textArray } from "../../src/store/postgres/connection/array.js";
import { DIRECT_URL, IS_POOLED, POSTGRES_URL } from "./places.js";

type Sent = { readonly name: string | undefined; readonly text: string };
type Ask = (config: unknown, values?: unknown) => Promise<pg.QueryResult>;
type Client = {
  query: Ask;
  readonly connection: { readonly stream: Socket };
  processID: number;
  on(event: "end", listener: () => void): void;
};

export class WatchedPool {
  readonly pool: pg.Pool;
  readonly sent: Sent[] = [];
  /** SQLSTATEs of what the server refused. */
  readonly refusals: string[] = [];
  /** How many statements were on their way at the same time over one connection, at most. */
  atOnceMax = 0;
  readonly #clients = new Set<Client>();
  #losing: RegExp | null = null;
  #explained: { readonly pattern: RegExp; readonly plans: Plan[] } | null = null;

  /**
   * Counted: what its sessions read will be asked of the server, which only the session itself makes known.
   * Where everything goes through a pooler, such a pool goes past it, as if it did not.
   */
  constructor({ max = 10, isBehindPooler = false, isPipelined = false, isCounted = false } = {}) {
    const connectionString = isCounted ? DIRECT_URL : POSTGRES_URL;
    const config = { connectionString, max, pipeline: isPipelined };
    this.pool = new pg.Pool(config as pg.PoolConfig);
    this.pool.on("error", () => undefined);
    this.pool.on("connect", (each) => {
      const client = each as unknown as Client;
      // A pooler makes up this number.
      if (isBehindPooler || (isCounted && IS_POOLED)) client.processID = 0x7fff_ffff;
      this.#clients.add(client);
      client.on("end", () => this.#clients.delete(client));
      this.#watch(client);
    });
  }

  /** The next statement that matches takes effect, but nobody hears of it. */
  loseAnswerTo(pattern: RegExp): void {
    this.#losing = pattern;
  }

  /** The statements that were sent meanwhile. */
  async statementsOf(work: () => Promise<unknown>): Promise<readonly Sent[]> {
    const before = this.sent.length;
    await work();
    return this.sent.slice(before);
  }

  /** How the server carries out the statements that match: each is tried first, counted and rolled back. */
  async plansOf(pattern: RegExp, work: () => Promise<unknown>): Promise<readonly Plan[]> {
    const plans: Plan[] = [];
    this.#explained = { pattern, plans };
    await work();
    this.#explained = null;
    return plans;
  }

  /** Makes the server publish what these connections have read so far. */
  async publishStatistics(): Promise<void> {
    for (const client of this.#clients) await client.query("select pg_stat_force_next_flush()");
  }

  #watch(client: Client): void {
    const query = client.query.bind(client);
    let onTheirWay = 0;
    client.query = async (config, values) => {
      const { name, text } = (typeof config === "string" ? { text: config } : config) as Sent;
      this.sent.push({ name, text });
      const explained = this.#explained;
      if (explained?.pattern.test(text))
        explained.plans.push(await planOf(query, text, (config as { values: unknown[] }).values));
      onTheirWay += 1;
      this.atOnceMax = Math.max(this.atOnceMax, onTheirWay);
      try {
        const answer = await query(config, values);
        if (!this.#losing?.test(text)) return answer;
      } catch (error) {
        this.refusals.push(String((error as { code?: unknown }).code));
        throw error;
      } finally {
        onTheirWay -= 1;
      }
      this.#losing = null;
      client.connection.stream.destroy();
      throw new Error("Connection terminated unexpectedly");
    };
  }
}

export type Plan = {
  readonly "Node Type": string;
  readonly Filter?: string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Join Filter"?: number;
  readonly Plans?: readonly Plan[];
};

/** Prepared, so that the plan is the one that is kept for any values. */
async function planOf(query: Ask, text: string, values: readonly unknown[]): Promise<Plan> {
  const given = values.map((value) => {
    if (value === null) return "null";
    return pg.escapeLiteral(Array.isArray(value) ? textArray(value) : String(value));
  });
  await query("begin");
  await query(`prepare explained as ${text}`);
  const { rows } = await query(
    `explain (analyze, timing off, format json) execute explained (${given.join(", ")})`,
  );
  await query("rollback");
  await query("deallocate explained");
  return rows[0]["QUERY PLAN"][0].Plan;
}

/** Only what a test does is counted: the server tidies none of its tables meanwhile. */
export async function keepVacuumAway(place: {
  readonly schema: string;
  sql(text: string): Promise<{ readonly rows: readonly { readonly relname?: unknown }[] }>;
}): Promise<void> {
  const { rows } = await place.sql(
    `select relname from pg_class where relkind = 'r' and relnamespace = '"${place.schema}"'::regnamespace`,
  );
  const tables = rows.map(({ relname }) => `$schema."${String(relname)}"`);
  await place.sql(
    tables.map((table) => `alter table ${table} set (autovacuum_enabled = false)`).join(";"),
  );
}
