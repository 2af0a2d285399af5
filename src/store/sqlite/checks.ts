// Runs checks on SQLite: in one read transaction, on a connection of its own if there is a file, so that this process
// can write meanwhile. Nothing interrupts a query in progress: the time limit is checked before each of them.

import type { Clock } from "../../shared/ports.js";
import {
  answered,
  type CheckFinding,
  type Checks,
  type OwnCheck,
  type Question,
  questionsOf,
  scriptOf,
  unaskable,
  unfinished,
} from "../checks/checks.js";
import { Repairs } from "../checks/repairs.js";
import type { BoundStatement } from "../session.js";
import { render } from "../sql/dialect.js";
import type { Dialect } from "../sql/template.js";
import type { Row, SqliteFile } from "./connection/connection.js";
import type { SqliteSession } from "./session.js";

export class SqliteChecks implements Checks {
  readonly #file: SqliteFile;
  readonly #clock: Clock;
  readonly #dialect: Dialect;
  /** Undefined: the database's own clock. */
  readonly #now: (() => number) | undefined;

  constructor(params: {
    readonly file: SqliteFile;
    readonly clock: Clock;
    readonly dialect: Dialect;
    readonly now: (() => number) | undefined;
  }) {
    this.#file = params.file;
    this.#clock = params.clock;
    this.#dialect = params.dialect;
    this.#now = params.now;
  }

  async run({ own, timeLimitMs }: Parameters<Checks["run"]>[0]): Promise<readonly CheckFinding[]> {
    const startedMs = this.#clock.monotonicMs();
    const steps = questionsOf("sqlite", own).map((question) => (file: SqliteFile) => {
      const beganMs = this.#clock.monotonicMs();
      if (beganMs - startedMs >= timeLimitMs) return unfinished(question);
      try {
        const rows = this.#ask(file, question);
        return answered(question, rows, this.#clock.monotonicMs() - beganMs);
      } catch (error) {
        return unaskable(question, error);
      }
    });
    return this.#file.snapshot(steps);
  }

  #ask(file: SqliteFile, { text, isOwn }: Question): Row[] {
    if (isOwn) return file.handle.prepare(text).all() as Row[];
    if (!this.#now) return file.all(text);
    return file.all(text.replaceAll("{now}", ":now"), { now: this.#now() });
  }

  script(own: readonly OwnCheck[]): string {
    return scriptOf({
      engine: "sqlite",
      dialect: this.#dialect,
      own,
      begin: "begin",
      how: "Run it: sqlite3 -box app.db < check.sql",
    });
  }
}

export class SqliteRepairs extends Repairs {
  readonly #session: SqliteSession;

  constructor(session: SqliteSession) {
    super(session);
    this.#session = session;
  }

  protected whileStill(verb: string, steps: readonly BoundStatement[]): Promise<readonly number[]> {
    const { file } = this.#session;
    return this.#session.transact(verb, (now) =>
      steps.map(({ sql, params }) => file.run(render(sql, "sqlite"), { ...params, now })),
    );
  }
}
