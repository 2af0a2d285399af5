// A SQLite handle of a process that dies at a given statement: before it, or after it and before its
// answer. What the process had open is rolled back, as the operating system does it, and whatever it
// still tries reaches nothing.

import { DatabaseSync } from "@photostructure/sqlite";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";
import type { Cut } from "./cut.js";

export class Dead extends Error {
  override readonly name = "Dead";
}

export function cutHandle(file: string, cut: Cut): SqliteHandle {
  const inner = new DatabaseSync(file);
  const die = () => {
    // Statements that are still prepared would keep the file locked in this process, which lives on.
    if (inner.isTransaction) inner.exec("rollback");
    inner.close();
    cut.died();
  };
  const pass = <T>(statement: () => T): T => {
    if (cut.isDead) throw new Dead("There is no such process any more.");
    const fate = cut.next();
    if (fate === "before") {
      die();
      throw new Dead("It died before the statement.");
    }
    const answer = statement();
    if (fate === "after") {
      die();
      throw new Dead("It died before the answer.");
    }
    return answer;
  };
  return {
    exec: (text) => pass(() => inner.exec(text)),
    prepare: (text) => {
      if (cut.isDead) throw new Dead("There is no such process any more.");
      const statement = inner.prepare(text);
      return {
        run: (...values) => pass(() => statement.run(...(values as never[]))),
        get: (...values) => pass(() => statement.get(...(values as never[]))),
        all: (...values) => pass(() => statement.all(...(values as never[]))),
      };
    },
    close: () => {
      if (!cut.isDead) inner.close();
    },
    get isTransaction() {
      return !cut.isDead && inner.isTransaction;
    },
  } as SqliteHandle;
}
