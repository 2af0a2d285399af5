// A process dies at its n-th statement, for every n, before it or before its answer, in a handler that
// commits its work with its run, with items, or with steps between waits. Another process goes on. In the
// end there is one effect for every completed run, item, step and called run, and never one more.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { systemClock } from "../../src/shared/adapters/clock.js";
import { systemIds, systemRandom } from "../../src/shared/adapters/random.js";
import type { PostgresTx } from "../../src/store/postgres/commits.js";
import { PostgresStore } from "../../src/store/postgres/store.js";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";
import { SqliteStore } from "../../src/store/sqlite/store.js";
import type { Store } from "../../src/store/store.js";
import type { RunContext } from "../../src/worker/handler/context.js";
import { Cut, type Fate } from "../support/cut.js";
import { cutPool } from "../support/cut-postgres.js";
import { cutHandle } from "../support/cut-sqlite.js";
import { POSTGRES_URL } from "./places.js";

const HOUR_MS = 3_600_000;
const KEYS = ["a", "b", "c"];
const SILENT = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** A database for two processes: one that dies, and one that does not. */
type Ground = {
  newStore(params: { readonly now: () => number; readonly cut: Cut | null }): Store;
  /** Does something in a transaction. */
  write(tx: unknown, what: string): unknown;
  effects(): Promise<string[]>;
  close(): Promise<void>;
};

type Handler = (ctx: RunContext, write: (what: string) => (tx: unknown) => unknown) => unknown;

type Scenario = {
  readonly keys: readonly string[];
  readonly handler: Handler;
  /** Processes die at every so many statements. */
  readonly stride?: number;
};

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "ctx.commit": { keys: [""], handler: (ctx, write) => ctx.commit(write(ctx.runId)) },
  "items with tx": {
    keys: KEYS.map((key) => ` ${key}`),
    handler: async (ctx, write) => {
      for (const key of KEYS) await ctx.item(key, write(`${ctx.runId} ${key}`), { tx: true });
    },
  },
  "steps with tx between waits": {
    keys: [" a", " b", " called"],
    stride: 4,
    handler: async (ctx, write) => {
      const step = (name: string) => ctx.step(name, write(`${ctx.runId} ${name}`), { tx: true });
      await step("a");
      await ctx.sleep(1);
      const key = ctx.runId;
      const [called] = await Promise.all([
        ctx.call("called", { what: `${key} called`, key }),
        ctx.waitFor("done", { key }),
      ]);
      expect(called).toBe(`${key} called`);
      await step("b");
    },
  },
};

async function sqliteGround(): Promise<Ground> {
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-killed-"));
  const file = path.join(folder, "holdfast.db");
  const observer = new DatabaseSync(file);
  observer.exec("pragma journal_mode = wal; create table effect (what text not null)");
  return {
    newStore: ({ now, cut }) =>
      new SqliteStore({
        source: cut ? { handle: cutHandle(file, cut) } : { file },
        clock: systemClock,
        random: systemRandom,
        synchronous: "NORMAL",
        migrate: "auto",
        mayCreate: true,
        now,
      }),
    write: (tx, what) => {
      (tx as SqliteHandle).exec(`insert into effect values ('${what}')`);
      return what;
    },
    effects: async () =>
      observer
        .prepare("select what from effect order by what")
        .all()
        .map((row) => String(row.what)),
    close: async () => {
      observer.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function postgresGround(): Promise<Ground> {
  const schema = `killed_${crypto.randomUUID().replaceAll("-", "_")}`;
  const url = POSTGRES_URL as string;
  const observer = new pg.Client(url);
  await observer.connect();
  await observer.query(
    `create schema "${schema}"; create table "${schema}".effect (what text not null)`,
  );
  return {
    newStore: ({ now, cut }) =>
      new PostgresStore({
        source: cut ? cutPool(url, cut) : url,
        schema,
        clock: systemClock,
        migrate: "auto",
        now,
      }),
    write: async (tx, what) => {
      await (tx as PostgresTx).query(`insert into "${schema}".effect values ($1)`, [what]);
      return what;
    },
    effects: async () => {
      const { rows } = await observer.query(`select what from "${schema}".effect order by what`);
      return rows.map(({ what }) => String(what));
    },
    close: async () => {
      await observer.query(`drop schema "${schema}" cascade`);
      await observer.end();
    },
  };
}

/** Time that only ever goes on: a dead holder's lease is over when the test says so. */
class Time {
  #aheadMs = 0;

  now = (): number => systemClock.wallMs() + this.#aheadMs;

  expireLeases(): void {
    this.#aheadMs += HOUR_MS;
  }
}

function instance(ground: Ground, params: { time: Time; cut: Cut | null; handler: Handler }) {
  const { time, cut, handler } = params;
  const holdfast = new Holdfast(
    { database: "sqlite::memory:", logger: SILENT, poll: cut ? "10m" : "100ms" },
    {
      ports: { clock: systemClock, random: systemRandom, ids: systemIds() },
      store: () => ground.newStore({ now: time.now, cut }),
    },
  );
  const write = (what: string) => (tx: unknown) => ground.write(tx, what);
  const common = { lease: "30s", retry: { attempts: 20, delay: "1ms", max: "1ms" } } as const;
  const study = holdfast.job("study", { ...common, run: (_, ctx) => handler(ctx, write) });
  holdfast.job("called", {
    ...common,
    run: async ({ what, key }: { what: string; key: string }, ctx) => {
      await holdfast.signal("done", { key, value: what });
      return ctx.commit(write(what));
    },
  });
  return { holdfast, study };
}

/** One run whose first process dies at this statement; answers whether it got so far. */
async function killedAt(
  ground: Ground,
  params: { readonly number: number; readonly fate: Fate; readonly handler: Handler; time: Time },
): Promise<{ readonly id: string; readonly hasDied: boolean }> {
  const { number, fate, handler, time } = params;
  const heir = instance(ground, { time, cut: null, handler });
  const { id } = await heir.study.enqueue({});
  const done = heir.holdfast.runs.wait(id, { timeout: "20s" });
  let onDeath = () => {};
  const death = new Promise<void>((resolve) => {
    onDeath = resolve;
  });
  const cut = new Cut({ fate, number, onDeath });
  const dying = instance(ground, { time, cut, handler });
  dying.holdfast.start({ scheduler: false }).catch(() => undefined);
  await Promise.race([death, done]);
  if (cut.isDead) {
    time.expireLeases();
    await heir.holdfast.start({ scheduler: false });
  }
  const run = await done;
  const stopping = dying.holdfast.stop({ grace: 0 }).catch(() => undefined);
  if (!cut.isDead) await stopping;
  await heir.holdfast.stop();
  expect(run.status).toBe("completed");
  return { id, hasDied: cut.isDead };
}

function describeKilled(name: string, makeGround: () => Promise<Ground>): void {
  describe.concurrent(name, () => {
    for (const [what, { keys, handler, stride = 1 }] of Object.entries(SCENARIOS)) {
      for (const fate of ["before", "after"] as const) {
        test(`${what}: a process that dies ${fate === "before" ? "before" : "after"} any of its statements leaves one effect for each`, {
          timeout: 600_000,
        }, async () => {
          const ground = await makeGround();
          const time = new Time();
          const expected: string[] = [];
          let number = 1;
          for (let hasDied = true; hasDied && number < 200; number += stride) {
            const answer = await killedAt(ground, { number, fate, handler, time });
            hasDied = answer.hasDied;
            expected.push(...keys.map((key) => `${answer.id}${key}`));
            expect(await ground.effects()).toEqual([...expected].sort());
          }
          expect(number).toBeGreaterThan(5);
          await ground.close();
        });
      }
    }
  });
}

describeKilled("on SQLite", sqliteGround);
describe.skipIf(POSTGRES_URL === undefined)("with a server", () => {
  describeKilled("on PostgreSQL", postgresGround);
});
