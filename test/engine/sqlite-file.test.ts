// Proves what becomes of instances on a SQLite file that is deleted, moved, replaced or read-only, and that a stop
// closes it. Real files, real processes' rights.

import { readdirSync, readlinkSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { runInNewContext } from "node:vm";
import { DatabaseSync } from "@photostructure/sqlite";
import { test as base, describe, expect } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import type { HoldfastOptions } from "../../src/instance/config.js";
import { systemClock } from "../../src/shared/adapters/clock.js";
import { systemIds, systemRandom } from "../../src/shared/adapters/random.js";
import { LeaseLostError, StoreGoneError, StoreReadOnlyError } from "../../src/shared/errors.js";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";
import type { Logger } from "../../src/telemetry/log.js";
import { aborted, Door } from "./world.js";

const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };
const NOBODY = 65_534;

const test = base.extend<{ file: string }>({
  file: async ({ task: _ }, use) => {
    const folder = await mkdtemp(path.join(tmpdir(), "holdfast-file-"));
    await use(path.join(folder, "app.db"));
    await chmod(folder, 0o755);
    await rm(folder, { recursive: true, force: true });
  },
});

function open(file: string, options: HoldfastOptions = {}): Holdfast {
  return new Holdfast({ database: `sqlite:${file}`, poll: "10ms", logger: SILENT, ...options });
}

function gone(holdfast: Holdfast): Promise<{ readonly error: { readonly code: string } }> {
  return new Promise((resolve) => {
    holdfast.on("store.gone", resolve);
  });
}

const LOSSES: readonly (readonly [string, (file: string) => Promise<unknown>])[] = [
  ["deleted", (file) => rm(file)],
  ["moved", (file) => rename(file, `${file}.old`)],
  [
    "replaced",
    async (file) => {
      await writeFile(`${file}.new`, "");
      await rename(`${file}.new`, file);
    },
  ],
];

describe("a SQLite file that is no longer in its place", () => {
  for (const [what, lose] of LOSSES) {
    test(`an instance whose file was ${what} stops with STORE_GONE at its next poll, tells what it runs, and refuses to enqueue`, async ({
      file,
    }) => {
      const errors: unknown[] = [];
      const holdfast = open(file, { onError: (error) => errors.push(error) });
      const begun = new Door();
      const told = new Door<unknown>();
      const study = holdfast.job("study", {
        run: async (_, ctx) => {
          begun.open();
          told.open(await aborted(ctx.signal));
        },
      });
      await study.enqueue({});
      const isGone = gone(holdfast);
      await holdfast.start();
      await begun.opened;
      await lose(file);
      expect((await isGone).error).toMatchObject({ code: "STORE_GONE" });
      expect(await told.opened).toBeInstanceOf(LeaseLostError);
      await expect(study.enqueue({})).rejects.toBeInstanceOf(StoreGoneError);
      await expect(holdfast.runs.list({})).rejects.toThrow(
        what === "replaced" ? "was replaced by another file" : "was deleted or moved",
      );
      await expect(holdfast.start()).rejects.toBeInstanceOf(StoreGoneError);
      await holdfast.stop();
      expect(errors).toMatchObject([{ code: "STORE_GONE" }]);
    });
  }

  test("a process that only enqueues checks the file before the first write after a pause, and refused runs stay refused", async ({
    file,
  }) => {
    let pausedMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + pausedMs };
    const holdfast = new Holdfast(
      { database: `sqlite:${file}`, logger: SILENT },
      { ports: { clock, random: systemRandom, ids: systemIds() } },
    );
    const study = holdfast.job("study", {});
    await study.enqueue({});
    await rename(file, `${file}.old`);
    pausedMs += 60_000;
    await expect(study.enqueue({})).rejects.toBeInstanceOf(StoreGoneError);
    await rename(`${file}.old`, file);
    await expect(study.enqueue({})).rejects.toBeInstanceOf(StoreGoneError);
    await holdfast.stop();
    const later = open(file);
    expect((await later.runs.list({})).runs).toHaveLength(1);
    await later.stop();
  });

  test("the file of a given handle is looked at as well", async ({ file }) => {
    const theirs = new DatabaseSync(file);
    theirs.exec("pragma journal_mode = wal");
    const database = theirs as unknown as SqliteHandle;
    const holdfast = new Holdfast({ database, poll: "10ms", logger: SILENT });
    const isGone = gone(holdfast);
    await holdfast.start();
    await rm(file);
    expect((await isGone).error).toMatchObject({ code: "STORE_GONE" });
    await holdfast.stop();
    theirs.close();
  });

  test("a file that was rewritten in place by VACUUM is the same file", async ({ file }) => {
    const holdfast = open(file);
    const study = holdfast.job("study", { run: () => "done" });
    await holdfast.start();
    const other = new DatabaseSync(file, { timeout: 10_000 });
    other.exec("vacuum");
    other.close();
    const { id } = await study.enqueue({});
    expect(await holdfast.runs.wait(id)).toMatchObject({ status: "completed" });
    await holdfast.stop();
  });
});

/** Root may write everything: the rights of a file count for somebody else. */
async function asOrdinaryUser(act: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    await act();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

/** A file in a folder, both of a user that is not root, with tables and one run. */
async function existing(file: string): Promise<void> {
  await chmod(path.dirname(file), 0o777);
  // The library is loaded while it may be.
  const other = open(path.join(path.dirname(file), "other.db"));
  await other.runs.list({});
  await other.stop();
  await asOrdinaryUser(async () => {
    await mkdir(path.dirname(file), { recursive: true });
    const holdfast = open(file);
    await holdfast.job("study", {}).enqueue({});
    await holdfast.stop();
  });
}

async function refusal(file: string): Promise<unknown> {
  const holdfast = open(file);
  const study = holdfast.job("study", {});
  const refused = await study.enqueue({}).catch((error: unknown) => error);
  await holdfast.stop();
  return refused;
}

describe.skipIf(process.platform === "win32")("a SQLite file that may only be read", () => {
  test("without the right to write the file it gets STORE_READ_ONLY, with the next step", async ({
    file,
  }) => {
    await existing(file);
    await asOrdinaryUser(async () => {
      await chmod(file, 0o444);
      const refused = await refusal(file);
      expect(refused).toBeInstanceOf(StoreReadOnlyError);
      expect(refused).toMatchObject({ code: "STORE_READ_ONLY", file, tried: "enqueue.runs" });
      expect((refused as Error).message).toContain("Let its user read and write both");
    });
  });

  test("without the right to read the file, or to reach its folder, it gets STORE_READ_ONLY too", async ({
    file,
  }) => {
    await existing(file);
    await asOrdinaryUser(async () => {
      await chmod(file, 0o000);
      expect(await refusal(file)).toMatchObject({ code: "STORE_READ_ONLY", file, tried: "open" });
      const closed = path.join(path.dirname(file), "closed");
      await mkdir(closed, { mode: 0o000 });
      const inside = path.join(closed, "app.db");
      expect(await refusal(inside)).toMatchObject({ code: "STORE_READ_ONLY", tried: "open" });
      await chmod(closed, 0o755);
    });
  });

  test("a folder in the place of the file is named as a wrong option", async ({ file }) => {
    const refused = await refusal(path.dirname(file));
    expect(refused).toMatchObject({ code: "CONFIGURATION_INVALID" });
    expect((refused as Error).message).toMatch(/database: .* is a folder; give the path of a file/);
  });

  test("without the right to write the folder it gets STORE_READ_ONLY, whether or not the file exists", async ({
    file,
  }) => {
    const inside = path.join(path.dirname(file), "folder", "app.db");
    await existing(file);
    await asOrdinaryUser(async () => {
      await mkdir(path.dirname(inside));
      const holdfast = open(inside);
      await holdfast.runs.list({});
      await holdfast.stop();
      await chmod(path.dirname(inside), 0o555);
      expect(await refusal(inside)).toBeInstanceOf(StoreReadOnlyError);
      expect(await refusal(`${inside}.new`)).toMatchObject({
        code: "STORE_READ_ONLY",
        tried: "make the file",
      });
      await chmod(path.dirname(inside), 0o755);
    });
  });
});

function openFiles(file: string): string[] {
  return readdirSync("/proc/self/fd").flatMap((number) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${number}`);
      return target.startsWith(file) ? [target] : [];
    } catch {
      return [];
    }
  });
}

// Only Linux shows a process its open files as a folder.
describe.skipIf(process.platform !== "linux")("the files of a store that was closed", () => {
  test("after a stop no file descriptor of the database is open", async ({ file }) => {
    const holdfast = open(file);
    const study = holdfast.job("study", { run: () => "done" });
    const { id } = await study.enqueue({});
    await holdfast.start();
    await holdfast.runs.wait(id);
    await holdfast.check();
    expect(openFiles(file).length).toBeGreaterThan(0);
    await holdfast.stop();
    expect(openFiles(file)).toEqual([]);
  });

  test("a stop leaves no `gc` to contexts that the application makes afterwards", async ({
    file,
  }) => {
    const holdfast = open(file);
    await holdfast.runs.list({});
    await holdfast.stop();
    expect(openFiles(file)).toEqual([]);
    expect(runInNewContext("typeof gc")).toBe("undefined");
  });
});
