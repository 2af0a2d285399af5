// Commits a user's work together with the end of its run, or with an item, on SQLite. The work is synchronous: it holds
// the file and the event loop, so no other code of this process runs in between.

import { TxEndedError, TxMustBeSyncError } from "../../shared/errors.js";
import {
  type CommitItemParams,
  type CommitParams,
  type CommitStepParams,
  type CommitVerbs,
  RolledBack,
  ThrownByWork,
} from "../commits.js";
import type { ItemResult } from "../items.js";
import { storeWork } from "../steps.js";
import type { SqliteFile } from "./connection/connection.js";
import { type SqliteHandle, type SqliteTx, transactionHandle } from "./connection/handle.js";
import type { SqliteItems } from "./items.js";
import type { LeaseRows } from "./lease-rows.js";
import type { SqliteSession } from "./session.js";

export class SqliteCommits implements CommitVerbs {
  readonly #session: SqliteSession;
  readonly #file: SqliteFile;
  readonly #leases: LeaseRows;
  readonly #items: SqliteItems;
  #given: { readonly handle: SqliteHandle; readonly tx: SqliteTx } | null = null;

  constructor(params: {
    readonly session: SqliteSession;
    readonly leases: LeaseRows;
    readonly items: SqliteItems;
  }) {
    this.#session = params.session;
    this.#file = params.session.file;
    this.#leases = params.leases;
    this.#items = params.items;
  }

  run({ work, random }: CommitParams): Promise<"committed" | "stale"> {
    return this.#transact<"committed" | "stale">("ctx.commit", () => {
      const settlement = this.#work("ctx.commit", work);
      const { stale } = this.#leases.settle(
        { settlements: [settlement], random },
        this.#session.now(),
      );
      if (stale.length > 0) throw new RolledBack("stale");
      return "committed";
    });
  }

  item({ work }: CommitItemParams): Promise<ItemResult> {
    return this.#transact<ItemResult>("ctx.item", () => {
      const item = this.#work("ctx.item", work);
      const [answer] = this.#items.storeNow([item], this.#session.now());
      if (answer !== "stored") throw new RolledBack(answer);
      return "stored";
    });
  }

  step({ work, ...grant }: CommitStepParams): Promise<number | "stale"> {
    return this.#transact<number | "stale">("ctx.step", () => {
      const step = this.#work("ctx.step", work);
      const no = this.#session.drive(storeWork({ ...grant, step }), this.#session.now());
      if (no === "stale") throw new RolledBack(no);
      return no;
    });
  }

  async #transact<Answer>(what: string, work: () => Answer): Promise<Answer> {
    try {
      return await this.#session.transact(what, work);
    } catch (error) {
      if (error instanceof RolledBack) return error.result as Answer;
      throw error instanceof ThrownByWork ? error.error : error;
    }
  }

  /** The handle as users get it; the same object for as long as the handle is open. */
  #tx(): SqliteTx {
    const { handle } = this.#file;
    if (this.#given?.handle !== handle) this.#given = { handle, tx: transactionHandle(handle) };
    return this.#given.tx;
  }

  /** The user's function, in the open transaction. */
  #work<Value>(verb: string, work: (tx: unknown) => Value | Promise<Value>): Value {
    let value: Value | Promise<Value>;
    try {
      value = work(this.#tx());
    } catch (error) {
      throw new ThrownByWork(error);
    }
    if (!this.#file.isInTransaction) throw new ThrownByWork(new TxEndedError(verb));
    if (!isThenable(value)) return value;
    // The returned promise is abandoned: its outcome does not matter.
    value.then(undefined, () => undefined);
    throw new ThrownByWork(new TxMustBeSyncError(verb));
  }
}

function isThenable<Value>(value: Value | Promise<Value>): value is Promise<Value> {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { then?: unknown }).then === "function"
  );
}
