// Runs real worker processes on a real database; they note every start of a handler in a file. It ends
// every process that it started, and no other.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import readline from "node:readline";
import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";
import { test as base, describe, expect, type TestAPI } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import type { Run } from "../../src/runs/view.js";
import type { ScheduleOptions } from "../../src/schedules/rules/schedule.js";
import type { Tick } from "../../src/schedules/view.js";
import { PATIENCE_MS, until } from "../support/until.js";

/** Set by test/setup/postgres.ts where there is a server. */
export const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;

const WORKER = path.join(import.meta.dirname, "fixtures", "worker.mjs");

/** A line that a worker said. */
export type Line = { readonly event: string; readonly [field: string]: unknown };

export type Orders = {
  readonly lease?: string;
  readonly poll?: string;
  /** Of every job. */
  readonly timeout?: string;
  readonly heartbeat?: "main" | "thread";
  readonly grace?: string;
  readonly concurrency?: number;
  readonly attempts?: number;
  readonly reportsPolls?: boolean;
  /** How far its clock is off. */
  readonly skewMs?: number;
  /** At most so many schedules in one write of its ticker, instead of as many as are due. */
  readonly batch?: number;
  /** Its ticker waits with every write until it is released; it says "holding" and then "written". */
  readonly holdsWrites?: boolean;
  /** False: it fires no schedules. */
  readonly scheduler?: boolean;
  /** Schedules that its code declares, all of the job "tiny". */
  readonly declares?: Readonly<Record<string, ScheduleOptions>>;
  readonly env?: Readonly<Record<string, string>>;
};

type Database = { readonly url: string; readonly schema?: string };

export class Worker {
  readonly name: string;
  readonly lines: Line[] = [];
  readonly #child: ChildProcess;
  readonly exit: Promise<number | string>;
  #errors = "";
  #hasExited = false;

  constructor(name: string, orders: Orders & Record<string, unknown>) {
    this.name = name;
    this.#child = spawn(process.execPath, [WORKER, JSON.stringify(orders)], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...orders.env },
    });
    this.exit = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        this.#hasExited = true;
        resolve(code ?? signal ?? "gone");
      });
    });
    readline
      .createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })
      .on("line", (line) => this.lines.push(JSON.parse(line) as Line));
    this.#child.stderr?.on("data", (chunk) => {
      this.#errors += chunk;
    });
    this.#child.stdin?.on("error", () => undefined);
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  /** The output on stderr: empty, unless something is wrong. */
  get errors(): string {
    return this.#errors;
  }

  heard(event: string): Line[] {
    return this.lines.filter((line) => line.event === event);
  }

  /** Waits for the first line of this event, or for as many as asked for. */
  async says(
    event: string,
    { count = 1, withinMs = PATIENCE_MS, everyMs = 10 } = {},
  ): Promise<Line> {
    await until(
      `${this.name} says "${event}"`,
      () => {
        if (this.heard(event).length >= count) return true;
        const [refused] = this.heard("refused");
        if (refused) throw new Error(`${this.name} was refused: ${JSON.stringify(refused)}`);
        if (this.#hasExited)
          throw new Error(`${this.name} ended before "${event}": ${this.#errors}`);
        return false;
      },
      { withinMs, everyMs },
    );
    return this.heard(event)[count - 1] as Line;
  }

  tell(command: string, given: object = {}): void {
    this.#child.stdin?.write(`${JSON.stringify({ command, ...given })}\n`);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Asks it to stop and waits until it has ended by itself. */
  async stops(): Promise<number | string> {
    this.signal("SIGTERM");
    return this.exit;
  }
}

export class WorkerProcesses {
  readonly #database: Database;
  readonly #folder: string;
  readonly #workers: Worker[] = [];
  readonly #holdfasts: Holdfast[] = [];

  constructor(database: Database, folder: string) {
    this.#database = database;
    this.#folder = folder;
    writeFileSync(this.#startsFile, "");
  }

  get #startsFile(): string {
    return path.join(this.#folder, "starts");
  }

  get workers(): readonly Worker[] {
    return this.#workers;
  }

  /** An instance in this process, for enqueuing and looking; it executes nothing. */
  observer(): Holdfast {
    const { url, schema } = this.#database;
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const holdfast = new Holdfast({ database: url, ...(schema ? { schema } : {}), logger });
    this.#holdfasts.push(holdfast);
    return holdfast;
  }

  /** Asks the database itself, past every store; tables are written `{run}`. */
  async ask(sql: string): Promise<Record<string, unknown>[]> {
    const { url, schema } = this.#database;
    if (schema === undefined) {
      const file = new DatabaseSync(url.slice("sqlite:".length));
      try {
        file.exec("pragma busy_timeout = 5000");
        return file.prepare(sql.replaceAll(/\{(\w+)\}/g, "holdfast_$1")).all() as Record<
          string,
          unknown
        >[];
      } finally {
        file.close();
      }
    }
    const client = new pg.Client(url);
    await client.connect();
    try {
      return (await client.query(sql.replaceAll(/\{(\w+)\}/g, `"${schema}".$1`))).rows;
    } finally {
      await client.end();
    }
  }

  spawn(name: string, orders: Orders = {}): Worker {
    const { url, schema } = this.#database;
    const starts = this.#startsFile;
    const worker = new Worker(name, { ...orders, name, database: url, schema, starts });
    this.#workers.push(worker);
    return worker;
  }

  async start(name: string, orders: Orders = {}): Promise<Worker> {
    const worker = this.spawn(name, orders);
    await worker.says("ready");
    return worker;
  }

  /** Every start of a handler, in order. */
  starts(): { run: string; fence: number; by: string }[] {
    return readFileSync(this.#startsFile, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => {
        const [run = "", fence, by = ""] = line.split(" ");
        return { run, fence: Number(fence), by };
      });
  }

  /** Every line of that event that any worker said. */
  heard(event: string): Line[] {
    return this.#workers.flatMap((worker) => worker.heard(event));
  }

  async end(): Promise<void> {
    for (const worker of this.#workers.filter(({ hasExited }) => !hasExited))
      worker.signal("SIGKILL");
    await Promise.all(this.#workers.map(({ exit }) => exit));
    await Promise.all(this.#holdfasts.map((holdfast) => holdfast.stop({ grace: 0 })));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export type ProcessTest = TestAPI<{ processes: WorkerProcesses }>;

/** The same tests on every database that several processes can share. */
export function onBothDatabases(
  describeIt: (test: ProcessTest, engine: "sqlite" | "postgres") => void,
) {
  describe("on one SQLite file", () => {
    describeIt(
      processTest((folder) => ({
        database: { url: `sqlite:${path.join(folder, "holdfast.db")}` },
        clear: async () => undefined,
      })),
      "sqlite",
    );
  });
  describe.skipIf(POSTGRES_URL === undefined)("on one PostgreSQL", () => {
    describeIt(
      processTest(() => postgresSchema(POSTGRES_URL as string)),
      "postgres",
    );
  });
}

type Place = { readonly database: Database; clear(): Promise<void> };

function processTest(makePlace: (folder: string) => Place): ProcessTest {
  return base.extend<{ processes: WorkerProcesses }>({
    processes: async ({ task: _ }, use) => {
      const folder = mkdtempSync(path.join(tmpdir(), "holdfast-process-"));
      const { database, clear } = makePlace(folder);
      const processes = new WorkerProcesses(database, folder);
      await use(processes);
      await processes.end();
      await clear();
    },
  }) as ProcessTest;
}

function postgresSchema(url: string): Place {
  const schema = `process_${crypto.randomUUID().replaceAll("-", "_")}`;
  return {
    database: { url, schema },
    clear: async () => {
      const client = new pg.Client(url);
      await client.connect();
      await client.query(`drop schema if exists "${schema}" cascade`);
      await client.end();
    },
  };
}

export function newFolder(): string {
  return mkdtempSync(path.join(tmpdir(), "holdfast-process-"));
}

/** Moves on when the run looks like that. */
export async function reached(
  holdfast: Holdfast,
  id: string,
  isReached: (run: Run) => boolean,
  withinMs = PATIENCE_MS,
): Promise<Run> {
  let seen: Run | null = null;
  const look = async () => {
    seen = await holdfast.runs.get(id);
    return seen && isReached(seen) ? seen : null;
  };
  return until(`run ${id} as awaited`, look, { withinMs }).catch((error: unknown) => {
    throw new Error(`The run was last seen as ${JSON.stringify(seen)}`, { cause: error });
  });
}

export async function ended(holdfast: Holdfast, id: string, withinMs?: number): Promise<Run> {
  return reached(holdfast, id, ({ finishedAt }) => finishedAt !== null, withinMs);
}

/** All runs, however many pages they are. */
export async function allRuns(holdfast: Holdfast): Promise<Run[]> {
  const runs: Run[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await holdfast.runs.list({ limit: 1_000, ...(cursor ? { cursor } : {}) });
    runs.push(...page.runs);
    cursor = page.nextCursor;
  }
  return runs;
}

/** The whole ledger, however many pages it is, the oldest tick first. */
export async function allTicks(holdfast: Holdfast): Promise<Tick[]> {
  const ticks: Tick[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await holdfast.schedules.ticks(null, {
      limit: 100,
      ...(cursor ? { cursor } : {}),
    });
    ticks.push(...page.ticks);
    cursor = page.nextCursor;
  }
  return ticks.reverse();
}

/** No two starts of one run carry the same fence, and later ones carry larger ones. */
export function expectOneStartPerFence(processes: WorkerProcesses): void {
  const fences = new Map<string, number[]>();
  for (const { run, fence } of processes.starts())
    fences.set(run, [...(fences.get(run) ?? []), fence]);
  const wrong = [...fences.values()].filter((each) =>
    each.some((fence, at) => at > 0 && fence <= (each[at - 1] as number)),
  );
  expect(wrong).toEqual([]);
}
