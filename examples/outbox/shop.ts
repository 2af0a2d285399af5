// An order and its mail are stored in the same transaction, so there is never an order without its mail, nor a mail
// about an order that was rolled back.

import { type Database, Holdfast } from "holdfast";

/** The application's own SQLite handle: Holdfast keeps its tables beside those of the shop. */
export type Handle = Extract<Database, { prepare(sql: string): unknown }>;

export function newShop(handle: Handle, send: (to: string, text: string) => Promise<void>) {
  handle.exec("create table if not exists orders (id text primary key, mail text, cents int)");
  const insert = handle.prepare("insert into orders values (:id, :mail, :cents)");
  const holdfast = new Holdfast({ database: handle });

  const confirm = holdfast.job("confirm-order", {
    async run(input: { id: string; mail: string }) {
      await send(input.mail, `Thank you for order ${input.id}.`);
    },
  });

  function inTransaction<T>(work: () => T): T {
    handle.exec("begin immediate");
    try {
      const value = work();
      handle.exec("commit");
      return value;
    } catch (error) {
      handle.exec("rollback");
      throw error;
    }
  }

  return {
    holdfast,
    /** Throws for an impossible order: then neither the row nor the run exists. */
    order: (order: { id: string; mail: string; cents: number }) =>
      inTransaction(() => {
        const { id, mail, cents } = order;
        insert.run({ id, mail, cents });
        const run = confirm.enqueueSync({ id, mail }, { tx: handle, key: id });
        if (cents <= 0) throw new Error(`Order ${id} costs nothing.`);
        return run;
      }),
  };
}
