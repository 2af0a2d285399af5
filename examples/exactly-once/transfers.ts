// Money between accounts in the same database as the runs: the writes of a transfer and the end of its run are one
// transaction. However often an attempt is repeated, the money moves once.

import { Holdfast, PermanentError, type SqliteHandle } from "holdfast";

export type Transfer = { from: string; to: string; cents: number };

const ACCOUNTS = `
  create table if not exists account (name text primary key, cents integer not null);
  insert into account values ('ada', 10000), ('ben', 0) on conflict do nothing;
`;

export function newBank(database: string, onMoved: (attempt: number) => void = () => {}) {
  const holdfast = new Holdfast({ database });

  const open = holdfast.job("open-accounts", {
    run: (_: null, ctx) => ctx.commit((tx: SqliteHandle) => void tx.exec(ACCOUNTS)),
  });

  const transfer = holdfast.job("transfer", {
    retry: { attempts: 5, delay: "20ms" },
    run: ({ from, to, cents }: Transfer, ctx) =>
      // On SQLite the function is synchronous; asynchronous work comes before it.
      ctx.commit((tx: SqliteHandle) => {
        const change = tx.prepare(
          "update account set cents = cents + :cents where name = :name and cents + :cents >= 0",
        );
        if (change.run({ name: from, cents: -cents }).changes !== 1)
          throw new PermanentError(`${from} does not have ${cents} cents`);
        change.run({ name: to, cents });
        onMoved(ctx.attempt);
        return { moved: cents };
      }),
  });

  const balance = holdfast.job("balance", {
    run: (name: string, ctx) =>
      ctx.commit((tx: SqliteHandle) =>
        tx.prepare("select cents from account where name = :name").get({ name }),
      ),
  });

  return { holdfast, open, transfer, balance };
}
