// Many processes that want the same few locks, some of which are killed and some stopped for longer
// than their lease. What the history of grants says is compared with what the processes saw.
// HOLDFAST_LOCK_ACQUISITIONS: how many each of the eight processes makes.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import readline from "node:readline";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { etcdLocks } from "../../src/locks/etcd.js";
import type { LockGrantView } from "../../src/locks/locks.js";
import { redisLocks } from "../../src/locks/redis.js";
import { hasEtcd, startEtcd } from "../support/etcd-server.js";
import { hasRedis, startRedis } from "../support/redis-server.js";
import { until } from "../support/until.js";
import { POSTGRES_URL } from "./worker-processes.js";

const LOCKER = path.join(import.meta.dirname, "fixtures", "locker.mjs");
const PROCESSES = 8;
const COUNT = Number(process.env.HOLDFAST_LOCK_ACQUISITIONS ?? 625);
const NAMES = 6;
const TIMEOUT_MS = 300_000 + COUNT * PROCESSES * 60;
/** Longer than the lease of the lockers, with something to spare for a slow machine. */
const PAUSE_MS = 1_500;

type Place = {
  readonly orders: object;
  readonly observer: Holdfast;
  /** Whether a stopped process may keep all others from writing. */
  readonly canBlock: boolean;
  clear(): Promise<void>;
};

type Line = readonly [event: string, name: string, fence: number, ...rest: unknown[]];

class Locker {
  readonly lines: Line[] = [];
  readonly exit: Promise<number | string>;
  hasExited = false;
  errors = "";
  readonly #child: ChildProcess;

  constructor(orders: object) {
    this.#child = spawn(process.execPath, [LOCKER, JSON.stringify(orders)]);
    this.exit = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        this.hasExited = true;
        resolve(code ?? signal ?? "gone");
      });
    });
    readline
      .createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })
      .on("line", (line) => this.lines.push(JSON.parse(line) as Line));
    this.#child.stderr?.on("data", (chunk) => {
      this.errors += chunk;
    });
  }

  heard(event: string): Line[] {
    return this.lines.filter(([said]) => said === event);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }
}

async function play({ orders, observer, canBlock, clear }: Place): Promise<void> {
  const lockers: Locker[] = [];
  const locker = () => {
    const made = new Locker({ ...orders, names: NAMES, count: COUNT });
    lockers.push(made);
    return made;
  };
  const done = () =>
    lockers.reduce((sum, each) => sum + each.heard("done").length + each.heard("lost").length, 0);
  const total = COUNT * PROCESSES;
  const startedAt = performance.now();
  try {
    for (let at = 0; at < PROCESSES; at += 1) locker();
    await until("all of them work", () => lockers.every((each) => each.heard("begun").length > 0));
    const rounds = 6;
    for (let round = 1; round <= rounds; round += 1) {
      const target = (total * round) / (rounds + 2);
      await until(`${target} of ${total} acquisitions`, () => done() >= target, {
        withinMs: TIMEOUT_MS,
      });
      const victim = await until("somebody holds a lock for a while", () =>
        lockers.find(({ lines, hasExited }) => !hasExited && lines.at(-1)?.[0] === "long"),
      );
      if (round % 2 === 0) {
        victim.signal("SIGKILL");
        await victim.exit;
        locker();
      } else await stopped(victim, observer, canBlock);
    }
    await until("all of them are done", () => lockers.every(({ hasExited }) => hasExited), {
      withinMs: TIMEOUT_MS,
    });
    const seconds = (performance.now() - startedAt) / 1_000;
    const grants = await allGrants(observer);
    const stats = await observer.locks.stats();
    console.log(
      `${done()} acquisitions by ${lockers.length} processes in ${seconds.toFixed(1)} s ` +
        `(${(done() / seconds).toFixed(0)} a second): ${JSON.stringify(stats)}`,
    );
    expect(lockers.map(({ errors }) => errors).join("")).toBe("");
    expect(done()).toBeGreaterThanOrEqual(total);
    judge(grants, lockers);
  } finally {
    for (const each of lockers) if (!each.hasExited) each.signal("SIGKILL");
    await Promise.all(lockers.map(({ exit }) => exit));
    await observer.stop();
    await clear();
  }
}

/** Stops the process for longer than its lease, between two of its statements where that matters. */
async function stopped(victim: Locker, observer: Holdfast, canBlock: boolean): Promise<void> {
  await until("it stands still without a lock on the file", async () => {
    victim.signal("SIGSTOP");
    if (!canBlock) return true;
    let canWrite = false;
    const writing = observer.runs.cancel(crypto.randomUUID()).then(() => {
      canWrite = true;
    });
    await until("somebody else can write", () => canWrite, { withinMs: 500 }).catch(
      () => undefined,
    );
    if (canWrite) return true;
    victim.signal("SIGCONT");
    await writing;
    return false;
  });
  const since = performance.now();
  await until("its lease has run out", () => performance.now() - since > PAUSE_MS);
  victim.signal("SIGCONT");
}

function judge(grants: readonly LockGrantView[], lockers: readonly Locker[]): void {
  const byFence = new Map(grants.map((grant) => [grant.fence, grant]));
  expect(byFence.size).toBe(grants.length);
  // S2: of one name, a later grant has a larger fence, and begins when the earlier one is over.
  const wrong: unknown[] = [];
  for (const name of new Set(grants.map((grant) => grant.name))) {
    const own = grants.filter((grant) => grant.name === name).sort((a, b) => a.fence - b.fence);
    for (const [at, grant] of own.entries()) {
      const before = own[at - 1];
      if (before && (before.endedAt === null || before.endedAt > grant.acquiredAt))
        wrong.push([before, grant]);
    }
  }
  expect(wrong).toEqual([]);
  // S1: a fence has one holder, who saw it once.
  const begun = lockers.flatMap((each) =>
    each.heard("begun").map(([, name, fence]) => ({ name, fence, by: idOf(each) })),
  );
  expect(new Set(begun.map(({ fence }) => fence)).size).toBe(begun.length);
  for (const { name, fence, by } of begun)
    expect(byFence.get(fence)).toMatchObject({ name, holder: by });
  // The end of a grant that its holder saw is the end that the table has.
  for (const each of lockers) {
    for (const [, , fence] of each.heard("done"))
      expect(byFence.get(fence)?.state).toBe("released");
    // Lost for want of an answer in time, it may still have been there to be given back.
    for (const [, , fence] of each.heard("lost"))
      if (fence > 0) expect(["expired", "released"]).toContain(byFence.get(fence)?.state);
    // S3: nothing is extended under an old fence, and a release is one only if it was one before.
    for (const [, , fence, isExtended, isReleased] of each.heard("stale")) {
      expect(isExtended).toBe(false);
      expect(isReleased).toBe(byFence.get(fence)?.state === "released");
    }
  }
}

function idOf(locker: Locker): unknown {
  return locker.heard("ready")[0]?.[1];
}

async function allGrants(observer: Holdfast): Promise<LockGrantView[]> {
  const grants: LockGrantView[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await observer.locks.history({ limit: 1_000, ...(cursor ? { cursor } : {}) });
    grants.push(...page.grants);
    cursor = page.nextCursor;
  }
  return grants;
}

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

describe(`${PROCESSES} processes, ${COUNT} acquisitions each, with kills and stops: a fence has one holder and stale words count for nothing`, () => {
  test("on one SQLite file", { timeout: TIMEOUT_MS }, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "holdfast-locks-"));
    const database = `sqlite:${path.join(folder, "holdfast.db")}`;
    await play({
      orders: { database },
      observer: new Holdfast({ database, logger: quiet }),
      canBlock: true,
      clear: async () => rmSync(folder, { recursive: true, force: true }),
    });
  });

  test.skipIf(POSTGRES_URL === undefined)(
    "on one PostgreSQL",
    { timeout: TIMEOUT_MS },
    async () => {
      const schema = `locks_${crypto.randomUUID().replaceAll("-", "_")}`;
      const database = POSTGRES_URL as string;
      await play({
        orders: { database, schema },
        observer: new Holdfast({ database, schema, logger: quiet }),
        canBlock: false,
        clear: async () => {
          const client = new pg.Client(database);
          await client.connect();
          await client.query(`drop schema if exists "${schema}" cascade`);
          await client.end();
        },
      });
    },
  );

  test.skipIf(!hasRedis())("on one Redis", { timeout: TIMEOUT_MS }, async () => {
    const server = await startRedis();
    await play({
      orders: { redis: server.socket },
      observer: new Holdfast({ locks: redisLocks(server.connect()), logger: quiet }),
      canBlock: false,
      clear: () => server.stop(),
    });
  });

  test.skipIf(!hasEtcd())("on one etcd", { timeout: TIMEOUT_MS }, async () => {
    const server = await startEtcd();
    await play({
      orders: { etcd: server.url },
      observer: new Holdfast({ locks: etcdLocks(server.url), logger: quiet }),
      canBlock: false,
      clear: () => server.stop(),
    });
  });
});
