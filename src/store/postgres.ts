// One connection to PostgreSQL: it connects when first needed, pipelines, puts a time limit on every
// statement, and is replaced as a whole once it broke. The only file that knows the `pg` driver.
// Whoever gets a `LinkFailure` with `isCertain: false` does not know whether its statement took effect.

import type { Client, ClientConfig, Pool, PoolClient } from "pg";
import { ConfigurationError, StoreUnavailableError } from "../core/errors.js";
import { redactUrl } from "../core/redact.js";

/** A connection string, or the pool of the surrounding application. */
export type PostgresSource = string | Pool;

export type Row = Record<string, unknown>;

/** A statement did not succeed. Certain: the server refused it, so nothing changed. */
export class LinkFailure extends Error {
  override readonly name = "LinkFailure";
  constructor(
    override readonly cause: unknown,
    /** SQLSTATE where the server spoke, else the driver's or the system's code. */
    readonly code: string,
    readonly isCertain: boolean,
  ) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 30_000;

// Certain refusals that a repeat may cure: serialization, deadlock, lock not available, cancelled by
// a time limit, too many connections, a server that starts, stops or was demoted.
const WORTH_REPEATING = /^(40001|40P01|55P03|57014|53\d\d\d|57P0\d|25006|08\w\w\w)$/;

export function isWorthRepeating(failure: unknown): boolean {
  return failure instanceof LinkFailure && (!failure.isCertain || WORTH_REPEATING.test(failure.code));
}

export class PostgresLink {
  readonly #source: PostgresSource;
  readonly #listenTo: string | null;
  readonly #onNotice: () => void;
  #client: Promise<Client | PoolClient> | null = null;
  #inFlight = 0;
  #isClosed = false;

  constructor(params: {
    readonly source: PostgresSource;
    /** Channel to listen to, or null. */
    readonly listenTo: string | null;
    readonly onNotice: () => void;
  }) {
    this.#source = params.source;
    this.#listenTo = params.listenTo;
    this.#onNotice = params.onNotice;
  }

  /** Statements sent and not yet answered. */
  get inFlight(): number {
    return this.#inFlight;
  }

  async query(params: {
    readonly name?: string;
    readonly text: string;
    readonly values?: readonly unknown[];
    readonly timeoutMs?: number;
  }): Promise<{ rows: Row[]; rowCount: number }> {
    this.#inFlight += 1;
    try {
      const client = await this.#connected();
      const answer = await client.query({
        ...(params.name === undefined ? {} : { name: params.name }),
        text: params.text,
        values: params.values as unknown[],
        query_timeout: params.timeoutMs ?? STATEMENT_TIMEOUT_MS,
      } as never);
      const { rows, rowCount } = answer as unknown as { rows: Row[]; rowCount: number | null };
      return { rows, rowCount: rowCount ?? 0 };
    } catch (error) {
      throw this.#failure(error);
    } finally {
      this.#inFlight -= 1;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client;
    this.#client = null;
    if (client) await client.then(release, () => undefined);
  }

  /** Connects, or waits for the connection that is being made. A failed attempt is not kept. */
  #connected(): Promise<Client | PoolClient> {
    if (this.#isClosed) return Promise.reject(new Error("The connection was closed."));
    if (this.#client) return this.#client;
    const connecting = connect(this.#source).then(async (client) => {
      const drop = () => {
        if (this.#client === connecting) this.#client = null;
        discard(client);
      };
      // Without these listeners an error on an idle connection would end the process.
      client.on("error", drop);
      client.on("end", drop);
      if (this.#listenTo !== null) {
        client.on("notification", () => this.#onNotice());
        await client.query(`listen "${this.#listenTo}"`);
      }
      return client;
    });
    this.#client = connecting;
    connecting.catch(() => {
      if (this.#client === connecting) this.#client = null;
    });
    return connecting;
  }

  #failure(error: unknown): LinkFailure {
    const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
    const isFromServer = typeof code === "string" && /^[0-9A-Z]{5}$/.test(code);
    const isCertain = isFromServer && severity === "ERROR";
    if (!isCertain) {
      const client = this.#client;
      this.#client = null;
      client?.then(discard, () => undefined);
    }
    return new LinkFailure(error, typeof code === "string" ? code : "UNKNOWN", isCertain);
  }
}

async function connect(source: PostgresSource): Promise<Client | PoolClient> {
  if (typeof source !== "string") return source.connect();
  const { default: pg } = await import("pg");
  const config = {
    connectionString: source,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: "holdfast",
    pipeline: true,
  } as ClientConfig;
  const client = new pg.Client(config);
  await client.connect();
  return client;
}

function discard(client: Client | PoolClient): void {
  if ("release" in client) client.release(true);
  else client.end().catch(() => undefined);
}

async function release(client: Client | PoolClient): Promise<void> {
  client.removeAllListeners("notification");
  if ("release" in client) client.release(true);
  else await client.end().catch(() => undefined);
}

/** Runs `work` in a transaction on a connection of its own: pipelined ones must not be mixed with one. */
export async function inTransaction<T>(
  source: PostgresSource,
  work: (query: (text: string, values?: readonly unknown[]) => Promise<Row[]>) => Promise<T>,
): Promise<T> {
  const client = await connect(source);
  client.on("error", () => undefined);
  const query = async (text: string, values: readonly unknown[] = []) =>
    (await client.query(text, values as unknown[])).rows as Row[];
  try {
    await query("begin");
    const value = await work(query);
    await query("commit");
    return value;
  } catch (error) {
    await query("rollback").catch(() => undefined);
    throw error;
  } finally {
    await release(client);
  }
}

/** Refuses what cannot be a PostgreSQL URL before anything is connected. */
export function checkPostgresUrl(url: string): void {
  let parsed: URL | undefined;
  try {
    parsed = new URL(url);
  } catch {}
  if (!parsed || !/^postgres(ql)?:$/.test(parsed.protocol)) {
    throw new ConfigurationError([
      {
        field: "database",
        message: `"${redactUrl(url)}" is not a PostgreSQL URL; right would be "postgres://user:password@host:5432/name"`,
      },
    ]);
  }
}

/** What an unreachable server is reported as: what was tried, and what to do. */
export function unavailable(source: PostgresSource, cause: unknown): StoreUnavailableError {
  const url = typeof source === "string" ? source : undefined;
  return new StoreUnavailableError({ tried: "connect to PostgreSQL", url, cause });
}
