// Tables of the first release: they are brought up to date by an instance that may, refused by one that may not, and closed to
// processes of the first release from then on.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { ADDED_COLUMNS } from "../../src/store/schema/upgrade.js";
import { memoryPlace, POSTGRES_URL, postgresPlace } from "./places.js";
import { World } from "./world.js";

const ENGINES = [
  { engine: "SQLite", place: memoryPlace },
  ...(POSTGRES_URL === undefined ? [] : [{ engine: "PostgreSQL", place: postgresPlace }]),
];
const ADDED = ["session", "access_key", "step", "wait", "signal", "wake"];

/** Removes what the first release did not have. */
async function makeOld(world: World): Promise<void> {
  const isSqlite = (await world.store()).engine === "sqlite";
  const views = isSqlite
    ? await world.rows("select name from sqlite_master where type = 'view'")
    : [];
  for (const { name } of views) await world.execute(`drop view ${name}`);
  for (const table of ADDED) await world.execute(`drop table {${table}}`);
  await world.execute("drop index {attempt_lost}");
  for (const { table, column } of ADDED_COLUMNS)
    await world.execute(
      `alter table {${table}} drop column ${column} ${isSqlite ? "" : "cascade"}`,
    );
  await world.execute("update {schema_version} set version = 1, min_compatible = 1");
}

for (const { engine, place } of ENGINES)
  test(`tables of the first release are brought up to date, and closed to its processes, on ${engine}`, async () => {
    const world = new World(await place());
    try {
      const before = world.member();
      const { id } = await before.holdfast.job("nap", {}).enqueue({});
      await makeOld(world);
      const member = world.member({ poll: "10m" });
      member.holdfast.job("nap", { run: (_, ctx) => ctx.sleep("1h") });
      await member.holdfast.start();
      await world.ended(id, { withinMs: 4 * 3_600_000 });
      expect(
        await world.rows(`select version, min_compatible from ${world.table("schema_version")}`),
      ).toEqual([{ version: 2, min_compatible: 2 }]);
      // Fails if the index was not made again.
      await world.execute("drop index {attempt_lost}");
      expect(await member.holdfast.check()).toMatchObject({ ok: true });
    } finally {
      await world.end();
    }
  });

test("tables of the first release are refused by an instance that may not change them", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-upgrade-"));
  const file = path.join(folder, "holdfast.db");
  const first = new Holdfast({ database: `sqlite:${file}` });
  await first.runs.list();
  await first.stop();
  const database = new DatabaseSync(file);
  database.exec("update holdfast_schema_version set version = 1, min_compatible = 1");
  database.close();
  const refused = new Holdfast({ database: `sqlite:${file}`, migrate: "check" });
  await expect(refused.runs.list()).rejects.toMatchObject({
    code: "MIGRATION_REFUSED",
    version: 1,
  });
  await refused.stop();
  rmSync(folder, { recursive: true });
});
