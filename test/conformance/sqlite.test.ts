// Tests SQLite alone: a handle that belongs to the surrounding application.

import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { test as base, describe, expect } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { systemClock } from "../../src/shared/adapters/clock.js";
import { StoreUnavailableError } from "../../src/shared/errors.js";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";

const test = base.extend<{ file: string }>({
  file: async ({ task: _ }, use) => {
    const folder = mkdtempSync(path.join(tmpdir(), "holdfast-sqlite-"));
    await use(path.join(folder, "app.db"));
    rmSync(folder, { recursive: true, force: true });
  },
});

describe("SQLite alone", () => {
  test("a given handle keeps its owner's lock timeout before and after our statements", async ({
    file,
  }) => {
    const theirs = new DatabaseSync(file, { timeout: 1_234 });
    theirs.exec("pragma journal_mode = wal");
    const waits = () => theirs.prepare("pragma busy_timeout").get();
    const holdfast = new Holdfast({ database: theirs as unknown as SqliteHandle });
    const study = holdfast.job("study", { run: () => "done" });
    const { id } = await study.enqueue({});
    expect(waits()).toEqual({ timeout: 1_234 });
    await holdfast.start();
    await holdfast.runs.wait(id);
    expect(waits()).toEqual({ timeout: 1_234 });
    await holdfast.stop();
    expect(waits()).toEqual({ timeout: 1_234 });
    theirs.close();
  });

  test("while another connection writes, a store on a given handle waits without stopping the event loop", async ({
    file,
  }) => {
    const theirs = new DatabaseSync(file, { timeout: 5_000 });
    theirs.exec("pragma journal_mode = wal");
    const holdfast = new Holdfast({ database: theirs as unknown as SqliteHandle });
    const study = holdfast.job("study", {});
    await study.enqueue({});
    const other = new DatabaseSync(file);
    other.exec("begin immediate");
    const startedAt = performance.now();
    const storing = study.enqueue({});
    await new Promise<void>((resolve) => systemClock.soon(resolve));
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    other.exec("commit");
    await storing;
    await holdfast.stop();
    other.close();
    theirs.close();
  });

  test("on a full disk a run is refused as the database being away, nothing is stored, and room ends it", async ({
    file,
  }) => {
    const theirs = new DatabaseSync(file);
    theirs.exec("pragma journal_mode = wal");
    const holdfast = new Holdfast({ database: theirs as unknown as SqliteHandle });
    const study = holdfast.job("study", {});
    await study.enqueue({});
    const { page_count: pages } = theirs.prepare("pragma page_count").get() as {
      page_count: number;
    };
    theirs.exec(`pragma max_page_count = ${pages}`);
    const large = { text: "x".repeat(100_000) };
    const refused = await study.enqueue(large).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StoreUnavailableError);
    expect((refused as Error).message).toContain("the disk is full");
    theirs.exec("pragma max_page_count = 1073741823");
    await study.enqueue(large);
    expect((await holdfast.runs.list({})).runs).toHaveLength(2);
    await holdfast.stop();
    theirs.close();
  });

  test("after a stop the file alone has everything, also while another only reads", async ({
    file,
  }) => {
    const holdfast = new Holdfast({ database: `sqlite:${file}` });
    const study = holdfast.job("study", { run: () => "done" });
    const { id } = await study.enqueue({});
    const reader = new DatabaseSync(file, { readOnly: true });
    await holdfast.start();
    await holdfast.runs.wait(id);
    await holdfast.stop();
    // The last commits are in the file beside it until somebody moves them.
    const copy = path.join(path.dirname(file), "copy.db");
    copyFileSync(file, copy);
    reader.close();
    const later = new Holdfast({ database: `sqlite:${copy}` });
    expect(await later.runs.get(id)).toMatchObject({ status: "completed", result: "done" });
    await later.stop();
  });

  test("a start with the jobs of the one before writes none of them, and one that changed is written alone", async ({
    file,
  }) => {
    const theirs = new DatabaseSync(file);
    theirs.exec("pragma journal_mode = wal");
    const startOnce = async (attempts: number) => {
      const holdfast = new Holdfast({ database: theirs as unknown as SqliteHandle });
      const run = () => "done";
      holdfast.job("study", {
        run,
        concurrency: { limit: 2 },
        rate: { limit: 5, per: "1m" },
        queue: "slow",
      });
      holdfast.job("report", { run, retry: { attempts } });
      await holdfast.start();
      await holdfast.stop();
    };
    const written = () => theirs.prepare("select what from written order by what").all();
    await startOnce(3);
    theirs.exec("create table written (what text)");
    for (const [table, column] of [
      ["lane", "job"],
      ["policy", "attempts"],
      ["job", "name"],
    ])
      for (const verb of ["insert", "update"])
        theirs.exec(`create trigger ${verb}_${table} after ${verb} on holdfast_${table} begin
          insert into written values ('${table} ' || new.${column}); end`);
    await startOnce(3);
    expect(written()).toEqual([]);
    await startOnce(4);
    expect(written().map(({ what }) => what)).toEqual(["job report", "lane report", "policy 4"]);
    theirs.close();
  });
});
