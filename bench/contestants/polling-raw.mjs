// Many pollers that claim schedules by hand: each reads what is due, and takes a schedule by an update that compares the
// time of its last run. A winner adds a run, in the same transaction. It evaluates nothing: every schedule has a tick a second.

import { DatabaseSync } from "@photostructure/sqlite";
import pg from "pg";

const EVERY_MS = 1000;
const TABLES = [
  `create table if not exists polled (id text primary key, last_run_at bigint, next_run_at bigint not null)`,
  "create index if not exists polled_next on polled (next_run_at)",
  "create table if not exists polled_run (schedule text not null, at bigint not null, primary key (schedule, at))",
];
const DUE = "select id, last_run_at, next_run_at from polled where next_run_at <= $1";
const CLAIM = `
  update polled set last_run_at = $3, next_run_at = $4
  where id = $1 and last_run_at is not distinct from $2 returning id`;
const ADD = "insert into polled_run (schedule, at) values ($1, $2)";

/** @param {{ url: string, schedules: number, pollers: number }} params */
export async function open({ url, schedules, pollers }) {
  const connect = url.startsWith("sqlite:") ? onSqlite : onPostgres;
  const links = await Promise.all(Array.from({ length: pollers }, () => connect(url)));
  const [{ send }] = links;
  for (const text of TABLES) await send(text).catch(() => {});
  const firstMs = Math.ceil(Date.now() / EVERY_MS) * EVERY_MS;
  for (let at = 0; at < schedules; at += 1)
    await send("insert into polled values ($1, null, $2) on conflict do nothing", [
      `${at}`,
      firstMs,
    ]);

  const poll = (link) => async () => {
    const now = Date.now();
    let won = 0;
    for (const { id, last_run_at: last, next_run_at: next } of await link.send(DUE, [now])) {
      const tick = Number(next);
      const nextMs = tick + EVERY_MS * Math.ceil((now - tick + 1) / EVERY_MS);
      if (await link.claim([id, last, tick, nextMs], [id, tick])) won += 1;
    }
    return won;
  };
  return {
    polls: links.map(poll),
    close: () => Promise.all(links.map(({ close }) => close())),
  };
}

async function onPostgres(url) {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  const send = async (text, values = []) => (await client.query(text, values)).rows;
  return {
    send,
    close: () => client.end(),
    async claim(schedule, run) {
      await send("begin");
      const isWon = (await send(CLAIM, schedule)).length > 0;
      if (isWon) await send(ADD, run);
      await send("commit");
      return isWon;
    },
  };
}

function onSqlite(url) {
  const database = new DatabaseSync(url.replace(/^sqlite:/, ""), { timeout: 5_000 });
  database.exec("pragma journal_mode = wal");
  const prepared = new Map();
  const now = (text, values = []) => {
    const numbered = text.replace(/\$(\d)/g, "?$1");
    if (!prepared.has(numbered)) prepared.set(numbered, database.prepare(numbered));
    return prepared.get(numbered).all(...values);
  };
  return {
    send: async (text, values) => now(text, values),
    close: async () => database.close(),
    // In one go: another poller of this process would wait for it on this very thread.
    async claim(schedule, run) {
      now("begin immediate");
      const isWon = now(CLAIM, schedule).length > 0;
      if (isWon) now(ADD, run);
      now("commit");
      return isWon;
    },
  };
}
