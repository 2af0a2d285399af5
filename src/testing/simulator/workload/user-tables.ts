// The user's own tables in the simulated database, and what handlers do in them inside of `ctx.commit` and
// of items with `tx`. Nothing there keeps a second row out: that there is none is the promise.

import type { SqliteHandle } from "../../../store/sqlite/connection.js";
import type { RunContext } from "../../../worker/handler/context.js";

export const USER_TABLES = ["user_commit", "user_item"] as const;

export const CREATE_USER_TABLES = `
create table user_commit (run text not null, fence integer not null);
create index user_commit_run on user_commit (run);
create table user_item (run text not null, key text not null, value integer not null);
create index user_item_run on user_item (run, key);
`;

/** The effect of a run that is committed with its end. */
export function writeCommit(tx: SqliteHandle, { runId, fence }: RunContext): void {
  tx.prepare("insert into user_commit values (:run, :fence)").run({ run: runId, fence });
}

/** The effect of an item that is committed with it. */
export function writeItem(tx: SqliteHandle, { runId, fence }: RunContext, key: string): void {
  const row = { run: runId, key, value: fence };
  tx.prepare("insert into user_item values (:run, :key, :value)").run(row);
}
