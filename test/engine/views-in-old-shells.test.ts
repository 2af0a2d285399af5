// The public views in the sqlite3 of a distribution, which is older than the SQLite that Holdfast works with.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";

const version = spawnSync("sqlite3", ["--version"], { encoding: "utf8" }).stdout?.split(" ")[0];
if (!version)
  console.warn("\nNO sqlite3: the views are not read with an old shell (apt install sqlite3)\n");

test.skipIf(!version)(
  "a live run is active, and statistics are counted, in the sqlite3 of the distribution",
  async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "holdfast-shell-"));
    const file = path.join(folder, "app.db");
    const holdfast = new Holdfast({ database: `sqlite:${file}` });
    onTestFinished(async () => {
      await holdfast.stop({ grace: 0 });
      rmSync(folder, { recursive: true });
    });
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const begun = new Promise<void>((resolve) => {
      holdfast.job("study", {
        run: async (input) => {
          if (input !== "long") return;
          resolve();
          await opened;
        },
      });
    });
    const short = await holdfast.enqueue("study", "short");
    await holdfast.start();
    await holdfast.runs.wait(short.id);
    const { id } = await holdfast.enqueue("study", "long");
    await begun;
    const read = (sql: string) =>
      JSON.parse(execFileSync("sqlite3", ["-json", file, sql], { encoding: "utf8" }) || "[]");
    expect(
      read("select id, heartbeat_status, seconds_since_heartbeat as silent from v_running_runs"),
    ).toEqual([{ id, heartbeat_status: "active", silent: expect.any(Number) }]);
    expect(read("select id from v_stale_runs")).toEqual([]);
    open();
    await holdfast.runs.wait(id);
    const [{ completed } = { completed: 0 }] = read(
      "select sum(completed) as completed from v_run_stats",
    );
    expect(completed).toBe(2);
    const names = read("select name from sqlite_master where type = 'view'") as { name: string }[];
    for (const { name } of names) expect(() => read(`select * from ${name} limit 1`)).not.toThrow();
    const [{ live } = { live: 0 }] = read("select live from v_instances");
    expect(live).toBe(1);
  },
);
