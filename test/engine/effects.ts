// The user's own table, in the same database: the effects of handlers, and how they are written on each engine.

import type { PostgresTx } from "../../src/store/postgres/commits.js";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";
import type { World } from "./world.js";

export class Effects {
  readonly #world: World;
  readonly #table: string;
  readonly isSync: boolean;

  private constructor(world: World, isSync: boolean) {
    this.#world = world;
    this.#table = world.table("effect");
    this.isSync = isSync;
  }

  static async open(world: World): Promise<Effects> {
    const { engine } = await world.store();
    await world.execute("create table {effect} (what text not null)");
    return new Effects(world, engine === "sqlite");
  }

  /** Writes it down in the transaction and answers with `value`: synchronously on SQLite. */
  write<Value>(what: string, value: Value): (tx: unknown) => Value | Promise<Value> {
    const text = `insert into ${this.#table} values ('${what}')`;
    return (tx) => {
      if (!this.isSync) return (tx as PostgresTx).query(text).then(() => value);
      (tx as SqliteHandle).exec(text);
      return value;
    };
  }

  /** The same, and throws afterwards. */
  writeAndThrow(what: string, error: unknown): (tx: unknown) => never | Promise<never> {
    const thrower = (): never => {
      throw error;
    };
    const write = this.write(what, null);
    return (tx) => {
      const done = write(tx);
      return done instanceof Promise ? done.then(thrower) : thrower();
    };
  }

  async all(): Promise<string[]> {
    const rows = await this.#world.rows(`select what from ${this.#table} order by what`);
    return rows.map(({ what }) => String(what));
  }
}
