// A transaction as the store's statements see it, whoever opened it: one of our own connections, or
// a user's database library. Only the last statement before its commit is ours.

/** Sends one statement (`$1` …) inside an open transaction; answers with its rows. */
export type TxQuery = (
  text: string,
  values: readonly unknown[],
) => Promise<readonly Record<string, unknown>[]>;

/** What stands inside an open transaction: the user's object for it, and how we speak in it. */
export type OpenTransaction = { readonly tx: unknown; readonly query: TxQuery };

/** Opens a transaction around `fn`: commits when it resolves, rolls back when it rejects. */
export interface Transactor {
  transact<Value>(fn: (opened: OpenTransaction) => Promise<Value>): Promise<Value>;
}
