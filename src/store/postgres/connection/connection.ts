// Holds one connection to PostgreSQL: it connects on first use, pipelines, limits the time of every statement, and is
// replaced as a whole after it broke. The only file that knows the `pg` driver. A caller that gets a `LinkFailure` with
// `isCertain: false` does not know whether its statement took effect.

import type { Socket } from "node:net";
import type { Client, ClientConfig, PoolClient } from "pg";
import { ConfigurationError, StoreUnavailableError } from "../../../shared/errors.js";
import { type Clock, delay } from "../../../shared/ports.js";
import { redactUrl } from "../../../shared/redact.js";
import { PIN_SESSION, PIN_TRANSACTION, pinnedStatement } from "./pinned.js";

/** A connection string, or the pool of the surrounding application. */
export type PostgresSource = string | PostgresPool;

/**
 * The part of pg's Pool that is used, typed here: an application that compiles against this package may not have the
 * types of pg.
 */
type PostgresPool = {
  readonly options: { readonly max?: number | undefined };
  readonly totalCount: number;
  connect(): Promise<object>;
  query(text: string): Promise<object>;
};

export type Row = Record<string, unknown>;

/** A statement failed. `isCertain`: it was refused or never sent, so nothing changed. */
export class LinkFailure extends Error {
  override readonly name = "LinkFailure";
  constructor(
    override readonly cause: unknown,
    /** The server's SQLSTATE if it replied, else the code of the driver or of the system. */
    readonly code: string,
    readonly isCertain: boolean,
  ) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

const POOL_MIN = 3;
const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 30_000;
/** How long a connection that was given up may still reply; then it is cut. */
const END_TIMEOUT_MS = 5_000;

// Certain failures that a retry may overcome: serialization, deadlock, lock not available, cancelled by a time limit,
// too many connections, a server that starts, stops, was demoted or was not reached.
const WORTH_REPEATING =
  /^(40001|40P01|55P03|57014|53\d\d\d|57P0\d|25006|08\w\w\w|UNKNOWN|EAI_AGAIN|ENOTFOUND|EPIPE|E(CONN|HOST|NET)\w+|ETIMEDOUT)$/;
/** The server ended the session, so the outcome of the statement is unknown. */
const ENDS_SESSION = /^(57P|08)/;

export function isWorthRepeating(failure: unknown): boolean {
  if (!(failure instanceof LinkFailure)) return false;
  return !failure.isCertain || WORTH_REPEATING.test(failure.code) || isWithoutSocket(failure);
}

/** The server makes its Unix socket when it starts. */
function isWithoutSocket({ code, cause }: LinkFailure): boolean {
  return code === "ENOENT" && (cause as NodeJS.ErrnoException | null)?.syscall === "connect";
}

// Planner settings for our statements, which reach every large table through an index. A plan that was made while a
// table was empty and then kept (prepared statements are) would scan the table instead, and stay wrong until the next
// ANALYZE: claims of a thousand took 3 s each. Planning again costs more than a small claim, and compiling a plan costs
// more than running it. An index with the requested order is always used: a kept plan does not know how short a page is
// and would sort all of history for it.
const SETTINGS = `${PIN_SESSION}; set enable_seqscan = off; set enable_sort = off; set plan_cache_mode = force_generic_plan; set jit = off`;

type Connection = {
  readonly client: Client | PoolClient;
  /** Sends a statement when it may: without pipelining, one statement at a time. */
  readonly inTurn: <T>(send: () => Promise<T>) => Promise<T>;
  /** Whether the session is ours alone: then settings, LISTEN and prepared statements stay with it. */
  readonly isOwnSession: boolean;
  /** Ends the session, once; cleanly if it is returned whole. */
  readonly end: () => Promise<void>;
};

export class PostgresLink {
  readonly #source: PostgresSource;
  readonly #clock: Clock;
  readonly #listenTo: string | null;
  readonly #onNotice: (from: number) => void;
  #connection: Promise<Connection> | null = null;
  #current: Connection | null = null;
  #inFlight = 0;
  #isClosed = false;
  #onIdle: (() => void) | null = null;

  constructor(params: {
    readonly source: PostgresSource;
    readonly clock: Clock;
    /** Channel to listen to, or null. */
    readonly listenTo: string | null;
    /** `from` is the server process of the session that sent it. */
    readonly onNotice: (from: number) => void;
  }) {
    this.#source = params.source;
    this.#clock = params.clock;
    this.#listenTo = params.listenTo;
    this.#onNotice = params.onNotice;
  }

  /** Statements that were sent and have no reply yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  get isConnected(): boolean {
    return this.#current !== null;
  }

  /** The server process of this session; null while we have no session of our own. */
  get serverPid(): number | null {
    const { client, isOwnSession } = this.#current ?? {};
    return isOwnSession ? ((client as { readonly processID?: number }).processID ?? null) : null;
  }

  async query(params: {
    readonly name?: string;
    readonly text: string;
    readonly values?: readonly unknown[];
    readonly timeoutMs?: number;
  }): Promise<{ rows: Row[]; rowCount: number }> {
    this.#inFlight += 1;
    try {
      const connection = await this.#connected();
      return await ask(connection, pinned(connection, params)).catch((error: unknown) => {
        const failure = failureOf(error);
        if (!failure.isCertain) this.#drop(connection);
        throw failure;
      });
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#onIdle?.();
    }
  }

  /** Waits for the sent statements; each has a time limit, so this wait has one too. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#inFlight > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    const connection = this.#connection;
    this.#connection = null;
    await connection?.then(({ end }) => end()).catch(() => undefined);
  }

  /** Connects, or waits for the connection in progress. A failed attempt is not kept. */
  #connected(): Promise<Connection> {
    if (this.#isClosed) {
      return Promise.reject(new LinkFailure(new Error("The store was closed."), "CLOSED", true));
    }
    if (this.#connection) return this.#connection;
    const connecting = connect(this.#source, this.#clock).then(async (connection) => {
      const { client, isOwnSession } = connection;
      // Without these listeners an error on an idle connection would end the process.
      client.on("error", () => this.#drop(connection));
      client.on("end", () => this.#drop(connection));
      if (this.#listenTo !== null && isOwnSession) {
        client.on("notification", ({ processId }) => this.#onNotice(processId));
        await prepare(connection, `listen "${this.#listenTo}"`);
      }
      this.#current = connection;
      return connection;
    });
    const mayFail = connecting.catch((error: unknown) => {
      if (this.#connection === mayFail) this.#connection = null;
      // Nothing was sent yet, so whatever happened to the connection, the failure is certain.
      throw new LinkFailure(error, failureOf(error).code, true);
    });
    this.#connection = mayFail;
    return mayFail;
  }

  /** Statements of a broken connection fail one by one; none of them may end the new connection. */
  #drop(connection: Connection): void {
    if (this.#current === connection) {
      this.#current = null;
      this.#connection = null;
    }
    void connection.end();
  }
}

type Asked = {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly timeoutMs?: number;
};

/** Sends one statement of ours; behind a pooler it carries the settings that a session of our own has already. */
function pinned({ isOwnSession }: Connection, { text, values, ...asked }: Asked): Asked {
  if (isOwnSession) return { text, ...(values === undefined ? {} : { values }), ...asked };
  return { ...asked, text: pinnedStatement(text, values) };
}

async function ask(
  { client, inTurn, isOwnSession }: Connection,
  params: Asked,
): Promise<{ rows: Row[]; rowCount: number }> {
  const config = {
    ...(params.name === undefined || !isOwnSession ? {} : { name: params.name }),
    text: params.text,
    values: params.values as unknown[],
    query_timeout: params.timeoutMs ?? STATEMENT_TIMEOUT_MS,
  };
  const answer = await inTurn(() => client.query(config as never) as Promise<unknown>);
  // Of several statements in one message, the last one is the caller's.
  const last: unknown = Array.isArray(answer) ? answer.at(-1) : answer;
  const { rows, rowCount } = last as { rows: Row[]; rowCount: number | null };
  return { rows, rowCount: rowCount ?? 0 };
}

function failureOf(error: unknown): LinkFailure {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  const text = typeof code === "string" ? code : "UNKNOWN";
  return new LinkFailure(error, text, severity !== undefined && !ENDS_SESSION.test(text));
}

async function connect(
  source: PostgresSource,
  clock: Clock,
  settings: string | null = SETTINGS,
): Promise<Connection> {
  const client =
    typeof source === "string" ? await newClient(source) : await fromPool(source, clock);
  client.on("error", () => undefined);
  let isPipelined = false;
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(send: () => Promise<T>): Promise<T> => {
    if (isPipelined) return send();
    const sent = last.then(send, send);
    last = sent;
    return sent;
  };
  let ending: Promise<void> | undefined;
  const end = () => {
    ending ??= release(client, clock).catch(() => undefined);
    return ending;
  };
  try {
    const isOwnSession = await hasOwnSession(client);
    // A pooler may pass the server to another client at the end of a statement even though our next one has already
    // begun: then the other client gets our reply, and we get an empty one.
    isPipelined = isOwnSession && (client as { pipeline?: unknown }).pipeline === true;
    if (isOwnSession && settings !== null) await first(client, settings);
    return { client, inTurn, isOwnSession, end };
  } catch (error) {
    void end();
    throw error;
  }
}

/** Preparing a connection has a time limit too; otherwise everything that waits for it would wait forever. */
function first(client: Client | PoolClient, text: string): Promise<{ rows: Row[] }> {
  const config = { text, query_timeout: CONNECT_TIMEOUT_MS };
  return client.query(config as never) as unknown as Promise<{ rows: Row[] }>;
}

async function prepare({ client, end }: Connection, text: string): Promise<void> {
  try {
    await first(client, text);
  } catch (error) {
    void end();
    throw error;
  }
}

/** If the application holds every connection of its pool, that is like an unreachable server. */
async function fromPool(pool: PostgresPool, clock: Clock): Promise<PoolClient> {
  const done = new AbortController();
  const connecting = pool.connect() as Promise<PoolClient>;
  const tooLate = delay(clock, CONNECT_TIMEOUT_MS, done.signal);
  const client = await Promise.race([connecting, tooLate]).finally(() => done.abort());
  if (client) return client;
  connecting.then(
    (late) => late.release(),
    () => undefined,
  );
  const message = `The pool had no free connection for ${CONNECT_TIMEOUT_MS} ms.`;
  throw Object.assign(new Error(message), { code: "ETIMEDOUT" });
}

async function newClient(url: string): Promise<Client> {
  const { default: pg } = await import("pg");
  const config = {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    // For statements during connecting: a server that hangs there must not be awaited forever.
    query_timeout: CONNECT_TIMEOUT_MS,
    application_name: "holdfast",
    pipeline: true,
  } as ClientConfig;
  const client = new pg.Client(config);
  // Set before connecting: a session that is cut at its very beginning also emits an error event, and an error event
  // without a listener ends the process.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/**
 * A pooler (PgBouncer) between us and the server invents the process number that the client gets; behind one, the next
 * statement may run in another session.
 */
async function hasOwnSession(client: Client | PoolClient): Promise<boolean> {
  const { rows } = await first(client, "select pg_catalog.pg_backend_pid() as pid");
  return rows[0]?.pid === (client as { processID?: unknown }).processID;
}

/**
 * Clients of a pool are ended as well, because they carry our settings and listeners. A server that does not respond
 * does not close the connection either: it would stay open, and keep the process alive, forever.
 */
async function release(client: Client | PoolClient, clock: Clock): Promise<void> {
  if ("release" in client) return client.release(true);
  const done = new AbortController();
  const ended = client.end().catch(() => undefined);
  await Promise.race([ended, delay(clock, END_TIMEOUT_MS, done.signal)]);
  done.abort();
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}

/** A name makes the server keep the plan for as long as the connection lives. */
export type Query = (text: string, values?: readonly unknown[], name?: string) => Promise<Row[]>;

/** A separate connection for transactions, which must not be mixed with pipelined statements. */
export type TransactionLink = {
  /** Before the commit is sent, every failure is certain: nothing changed. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>;
  end(): Promise<void>;
};

export async function transactionLink(
  source: PostgresSource,
  clock: Clock,
): Promise<TransactionLink> {
  const connection = await connect(source, clock).catch((error: unknown) => {
    throw new LinkFailure(error, failureOf(error).code, true);
  });
  let isCommitting = false;
  const query: Query = (text, values = [], name) =>
    ask(connection, { text, values, ...(name === undefined ? {} : { name }) }).then(
      ({ rows }) => rows,
      (error: unknown) => {
        const { cause, code, isCertain } = failureOf(error);
        throw new LinkFailure(cause, code, isCertain || !isCommitting);
      },
    );
  return {
    end: connection.end,
    async transaction(work) {
      isCommitting = false;
      try {
        await query(connection.isOwnSession ? "begin" : `begin; ${PIN_TRANSACTION}`);
        const value = await work(query);
        isCommitting = true;
        await query("commit");
        return value;
      } catch (error) {
        await query("rollback").catch(() => undefined);
        throw error;
      }
    },
  };
}

/** A connection for users' statements, which are planned by the server's own settings. */
export type PlainLink = {
  query(params: {
    readonly text: string;
    readonly values?: readonly unknown[];
    readonly timeoutMs?: number;
  }): Promise<{ rows: Row[]; rowCount: number }>;
  end(): Promise<void>;
};

export async function plainLink(source: PostgresSource, clock: Clock): Promise<PlainLink> {
  const connection = await connect(source, clock, null).catch((error: unknown) => {
    throw new LinkFailure(error, failureOf(error).code, true);
  });
  return {
    end: connection.end,
    query: (params) =>
      ask(connection, params).catch((error: unknown) => {
        throw failureOf(error);
      }),
  };
}

export async function inTransaction<T>(
  { source, clock }: { readonly source: PostgresSource; readonly clock: Clock },
  work: (query: Query) => Promise<T>,
): Promise<T> {
  const link = await transactionLink(source, clock);
  try {
    return await link.transaction(work);
  } finally {
    await link.end();
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

/** Two connections are held permanently and a third one is used at times: with fewer, calls would wait forever. */
export function checkPool(source: PostgresSource): void {
  if (typeof source === "string") return;
  const { max } = source.options;
  if (max === undefined || max >= POOL_MIN) return;
  throw new ConfigurationError([
    {
      field: "database",
      message: `the pool may open ${max} connections; Holdfast needs ${POOL_MIN} of them, so give it \`new Pool({ max: 10 })\` or a URL`,
    },
  ]);
}

/** The error for an unreachable server: the address that was tried, and the next step. */
export function unavailable(source: PostgresSource, error: unknown): StoreUnavailableError {
  const url = typeof source === "string" ? source : undefined;
  const cause = error instanceof LinkFailure ? error.cause : error;
  const isTemporary =
    isWorthRepeating(error) || (error instanceof StoreUnavailableError && error.isTemporary);
  return new StoreUnavailableError({ tried: "connect to PostgreSQL", url, cause, isTemporary });
}
