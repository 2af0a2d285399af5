// Many schedules at once: one is made through Holdfast's public interface and its row is copied inside the database.
// Through the interface a hundred thousand of them would take longer than everything that is measured with them.

import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";

const SCHEMA = "holdfast";
const SQLITE_TABLE = "holdfast_schedule";

/** Of every copy: its number among them is `i`, the first moment is `at`, and `step` lies between two of them. */
const own = (step) => ({
  anchor_at: `t.anchor_at + ${step}`,
  cursor_at: `t.cursor_at + ${step}`,
  next_at: `t.next_at + ${step}`,
  input: `'{"number":' || i || ',"address":"someone@example.org"}'`,
});

/**
 * Copies the row of `template` until there are `count` of it, their ticks spread evenly over `spreadMs`.
 * @param {{ url: string, template: string, count: number, spreadMs?: number }} params
 */
export async function copySchedule({ url, template, count, spreadMs = 0 }) {
  if (url.startsWith("sqlite:")) return copyInSqlite({ url, template, count, spreadMs });
  await insidePostgres(url, async (client) => {
    const { rows } = await client.query(
      "select column_name as name from information_schema.columns where table_schema = $1 and table_name = 'schedule'",
      [SCHEMA],
    );
    const step = `(i * ${spreadMs}::float8 / ${count})::bigint`;
    const { columns, values } = partsOf({ names: rows.map(({ name }) => name), step });
    await client.query(
      `insert into ${SCHEMA}.schedule (${columns}) select ${values}
       from ${SCHEMA}.schedule t, generate_series(1, ${count} - 1) i where t.name = $1`,
      [template],
    );
    await client.query(`vacuum analyze ${SCHEMA}.schedule`);
    await client.query("checkpoint");
  });
}

function copyInSqlite({ url, template, count, spreadMs }) {
  const database = new DatabaseSync(url.replace(/^sqlite:/, ""));
  try {
    const names = database.prepare("select name from pragma_table_info(?)").all(SQLITE_TABLE);
    const step = `cast(i * ${spreadMs}.0 / ${count} as integer)`;
    const { columns, values } = partsOf({ names: names.map(({ name }) => name), step });
    database
      .prepare(
        `with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < ${count} - 1)
         insert into ${SQLITE_TABLE} (${columns}) select ${values} from ${SQLITE_TABLE} t, numbers where t.name = ?`,
      )
      .run(template);
    database.exec("pragma wal_checkpoint(truncate)");
  } finally {
    database.close();
  }
}

function partsOf({ names, step }) {
  const kept = names.filter((name) => name !== "id" && name !== "name");
  const changed = own(step);
  return {
    columns: ["name", ...kept].join(", "),
    values: ["t.name || '-' || i", ...kept.map((name) => changed[name] ?? `t.${name}`)].join(", "),
  };
}

/** Sets where one schedule stands, as if it had been made then and seen by nobody since. */
export async function putBack({ url, name, toMs, nextMs }) {
  const change = (table) =>
    `update ${table} set created_at = ${toMs}, updated_at = ${toMs}, anchor_at = ${toMs}, cursor_at = ${toMs}, next_at = ${nextMs} where name = '${name}'`;
  if (!url.startsWith("sqlite:"))
    return insidePostgres(url, (client) => client.query(change(`${SCHEMA}.schedule`)));
  const database = new DatabaseSync(url.replace(/^sqlite:/, ""));
  database.exec(change(SQLITE_TABLE));
  database.close();
}

export async function insidePostgres(url, work) {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
