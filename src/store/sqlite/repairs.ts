// Mending and going on after a restored backup, on SQLite: one write transaction.

import {
  type Mended,
  type Remains,
  type RepairStore,
  statementsFor,
  toRemains,
  toVitals,
  type Vitals,
} from "../repairs.js";
import * as sql from "../sql/recovery.js";
import type { Row, SqliteFile } from "./connection.js";
import type { SqliteSession } from "./session.js";

export class SqliteRepairs implements RepairStore {
  readonly #file: SqliteFile;
  readonly #asker: SqliteSession;

  constructor(asker: SqliteSession) {
    this.#file = asker.file;
    this.#asker = asker;
  }

  async mend({ checks }: { readonly checks: readonly string[] }): Promise<readonly Mended[]> {
    return this.#file.write("repair", () =>
      checks.map((name) => ({
        name,
        changed: statementsFor(name, "sqlite").reduce((sum, each) => sum + this.#run(each), 0),
      })),
    );
  }

  async remains(): Promise<Remains> {
    return this.#file.read(() =>
      toRemains(this.#all(sql.GONE)[0] ?? {}, this.#all(sql.WAITING_BY_JOB)),
    );
  }

  async recover({ jump }: { readonly jump: number }): Promise<{
    readonly leases: number;
    readonly locks: number;
  }> {
    return this.#file.write("recover", () => {
      for (const statement of sql.RAISE_FENCES.sqlite) this.#run(statement, { jump });
      this.#run(sql.END_SESSIONS);
      return { leases: this.#run(sql.FREE_LEASES), locks: this.#run(sql.FREE_LOCKS.sqlite) };
    });
  }

  async vitals(params: Parameters<RepairStore["vitals"]>[0]): Promise<Vitals> {
    return this.#file.read(() => toVitals(this.#all(sql.VITALS, params)[0] ?? {}));
  }

  async strangers(): Promise<readonly string[]> {
    return [];
  }

  #run(template: string, params: Row = {}): number {
    return this.#file.run(onOurClock(template), { ...params, now: this.#asker.now() });
  }

  #all(template: string, params: Row = {}): Row[] {
    return this.#file.all(onOurClock(template), { ...params, now: this.#asker.now() });
  }
}

/** One now for all that a statement compares. */
function onOurClock(template: string): string {
  return template.replaceAll("{now}", ":now");
}
