// What a file about one database library answers. Recognition is by shape: no library is imported, so
// none is a dependency, and every version that has these members will do.

import type { TxQuery } from "../transaction.js";

export type Library = {
  /** For messages. */
  readonly name: string;
  /** How to speak inside an open transaction of this library; null if the object is none. */
  transaction(value: object): TxQuery | null;
  /** How to open a transaction on a database of this library; null if the object is none. */
  database(value: object): OpenIn | null;
};

/** Commits when `fn` resolves, rolls back when it rejects; gives it the library's own transaction. */
export type OpenIn = <Value>(fn: (tx: object) => Promise<Value>) => Promise<Value>;

export type Rows = readonly Record<string, unknown>[];

/** Whether the object, which may be a callable one, has all these methods. */
export function hasMethods<Name extends string>(
  value: object,
  ...names: readonly Name[]
): value is Record<Name, (...args: never[]) => unknown> {
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === "function");
}

/** Libraries answer with the rows, or with a result that has them. */
export function rowsOf(answer: unknown): Rows {
  if (Array.isArray(answer)) return answer as Rows;
  const { rows } = (answer ?? {}) as { readonly rows?: unknown };
  return Array.isArray(rows) ? (rows as Rows) : [];
}
