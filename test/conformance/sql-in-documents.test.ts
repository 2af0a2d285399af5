// Every statement that the documents show in SQL runs on PostgreSQL, page by page and in their order. All of
// it is one transaction that is rolled back: it makes roles, which belong to the whole server.
// Extensions that a page takes for granted (pg_cron, a vault, the tables of pg-boss) have stand-ins here.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { POSTGRES_URL } from "./places.js";

const URL = POSTGRES_URL as string;
const ROOT = path.resolve(import.meta.dirname, "../..");

const TAKEN_FOR_GRANTED = `
  create role holdfast; create role shop; create role reports; create role service_role;
  create table orders (id text primary key);
  create schema cron; create function cron.schedule(text, text, text) returns bigint language sql as 'select 1::bigint';
  create schema vault; create function vault.create_secret(text, text) returns text language sql as 'select $2';
  create schema pgboss; create table pgboss.job (id uuid, name text, data jsonb, state text, start_after timestamptz);
  insert into pgboss.job values (gen_random_uuid(), 'send-mail', '{"to": "ann"}', 'created', now());
`;

test.skipIf(POSTGRES_URL === undefined)("every statement of every page runs", async () => {
  const schema = `documents_${crypto.randomUUID().replaceAll("-", "_")}`;
  const holdfast = new Holdfast({ database: URL, schema });
  for (const name of ["confirm-order", "send-mail", "refresh-signals", "market-study"])
    holdfast.job(name, {});
  await holdfast.schedules.upsert("refresh-signals", { job: "refresh-signals", every: "10m..15m" });
  await holdfast.start({ worker: false, scheduler: false });
  await holdfast.enqueue("market-study", null);
  await holdfast.stop();
  const client = new pg.Client(URL);
  await client.connect();
  try {
    await client.query(`begin; ${TAKEN_FOR_GRANTED}`);
    await client.query(`select "${schema}".expose_functions('public')`);
    const shown = pages().flatMap(statements);
    expect(shown.length).toBeGreaterThan(25);
    const failed: string[] = [];
    let grant: Record<string, string> = {};
    for (const { page, text } of shown) {
      const isEnd = /:run_id/.test(text);
      const own = text
        .replaceAll(/\bholdfast\./g, `"${schema}".`)
        .replaceAll("schema holdfast ", `schema "${schema}" `)
        .replaceAll(/:(run_id|fence)\b/g, (_, name) => `'${grant[name]}'`);
      await client.query("savepoint one");
      try {
        const { rows } = await client.query(own);
        if (rows[0]?.fence !== undefined && rows[0]?.run_id !== undefined) grant = rows[0];
        // A page shows one end of a run beside the other, of which one can be had.
        if (isEnd) await client.query("rollback to one");
      } catch (error) {
        failed.push(`${page}: ${text}: ${(error as Error).message}`);
        await client.query("rollback to one");
      }
    }
    expect(failed).toEqual([]);
    // The body of a trigger is not looked at before it fires.
    await client.query("insert into orders values ('1043')");
    expect(grant).toHaveProperty("fence");
  } finally {
    await client.query("rollback");
    await client.query(`drop schema if exists "${schema}" cascade`);
    await client.end();
  }
});

function pages(): string[] {
  return readdirSync(path.join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .sort();
}

/** Those of its blocks, but for blocks that are a file of their own. */
function statements(page: string): { page: string; text: string }[] {
  const text = readFileSync(path.join(ROOT, "docs", page), "utf8");
  return [...text.matchAll(/(<!-- file: .*-->\n)?^```sql\n(.*?)^```$/gms)]
    .filter(([, file]) => file === undefined)
    .flatMap(
      ([, , block = ""]) => block.replaceAll(/--.*$/gm, "").match(/(?:\$\$.*?\$\$|[^;])+/gs) ?? [],
    )
    .map((each) => ({ page, text: each.trim() }))
    .filter((each) => each.text !== "");
}
