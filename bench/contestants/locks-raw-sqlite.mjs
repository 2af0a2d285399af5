// The raw limit of locks on SQLite: one transaction to acquire, one to release, through the library that
// Holdfast uses; a fence, a lease and a history row for each grant. The event loop gets its turn between.

import { setImmediate as turn } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";

const TABLES = /* sql */ `
  create table if not exists lock (
    fence integer primary key autoincrement, name text not null unique, holder text not null,
    acquired_at integer not null, until integer not null);
  create table if not exists history (
    fence integer primary key, name text not null, holder text not null, acquired_at integer not null,
    ended_at integer not null, state integer not null);
  create index if not exists history_name on history (name, fence);
  create index if not exists history_ended on history (ended_at);`;

/** @param {{ url: string }} params */
export async function open({ url }) {
  const database = new DatabaseSync(url.replace(/^sqlite:/, ""));
  database.exec(
    `pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 0; ${TABLES}`,
  );
  const holder = `bench:${process.pid}`;
  const held = database.prepare("select until from lock where name = ?");
  const insert = database.prepare(
    "insert into lock (name, holder, acquired_at, until) values (?, ?, ?, ?) returning fence",
  );
  const remove = database.prepare(
    "delete from lock where name = ? and fence = ? returning fence, name, holder, acquired_at",
  );
  const keep = database.prepare(
    "insert into history (fence, name, holder, acquired_at, ended_at, state) values (?, ?, ?, ?, ?, 1)",
  );
  const write = (work) => {
    database.exec("begin immediate");
    const value = work();
    database.exec("commit");
    return value;
  };
  return {
    async lock(name) {
      const fence = write(() => {
        const now = Date.now();
        if (held.get(name)?.until > now) throw new Error(`${name} is locked.`);
        return insert.get(name, holder, now, now + 30_000).fence;
      });
      await turn();
      write(() => {
        const gone = remove.get(name, fence);
        if (!gone) throw new Error(`${name} was lost.`);
        keep.run(gone.fence, gone.name, gone.holder, gone.acquired_at, Date.now());
      });
      await turn();
    },
    close: async () => database.close(),
  };
}
