// Declares the store's verbs for checking its own tables: which promises they break, and the same checks as an SQL
// script for people without the library.

import type { Row } from "../rows.js";
import { type Dialect, fillIn } from "../sql/template.js";
import { CHECKS, checkSql } from "./check-statements.js";

/** A query that a user runs on their own tables: every returned row is a violation. */
export type OwnCheck = { readonly name: string; readonly sql: string };

export type CheckFinding = {
  readonly name: string;
  /** The promise that it belongs to; null: none, or a check of the user's. */
  readonly promise: string | null;
  readonly violations: number;
  /** The first few of them. */
  readonly evidence: readonly Readonly<Record<string, unknown>>[];
  /** The time limit ended before the check had a result. */
  readonly isUnfinished: boolean;
  /** Why the check could not run. */
  readonly error: string | null;
  readonly tookMs: number;
};

export interface Checks {
  /**
   * Runs all checks in one snapshot, so that no transaction in progress looks like damage. A check without a result at
   * the time limit is unfinished.
   */
  run(params: {
    readonly own: readonly OwnCheck[];
    readonly timeLimitMs: number;
  }): Promise<readonly CheckFinding[]>;
  /** The same checks as one script for the database's own command line; it changes nothing. */
  script(own: readonly OwnCheck[]): string;
}

// Builds the statements of the checks, reads their results, and writes the script; the same for both databases.

const EVIDENCE_MAX = 10;

export type Question = {
  readonly name: string;
  readonly promise: string | null;
  /** Our text is a template; a user's text is sent as it is. */
  readonly isOwn: boolean;
  readonly text: string;
};

export function questionsOf(
  engine: "postgres" | "sqlite",
  own: readonly OwnCheck[],
): readonly Question[] {
  const ours = CHECKS.map((check) => ({
    name: check.name,
    promise: check.promise,
    isOwn: false,
    text: asked(checkSql(check, engine)),
  }));
  const theirs = own.map(({ name, sql }) => ({
    name,
    promise: null,
    isOwn: true,
    text: asked(bare(sql)),
  }));
  return [...ours, ...theirs];
}

/** One scan of the tables counts the violations and returns the first ones. */
function asked(sql: string): string {
  return `with found as materialized (\n${sql}\n)
select (select count(*) from found) as violation_count, f.* from found f limit ${EVIDENCE_MAX}`;
}

function bare(sql: string): string {
  return sql.trim().replace(/;\s*$/, "");
}

export function answered(
  { name, promise, isOwn }: Question,
  rows: readonly Row[],
  tookMs: number,
): CheckFinding {
  return {
    name,
    promise,
    violations: Number(rows[0]?.violation_count ?? 0),
    evidence: rows.map(({ violation_count: _, ...row }) => (isOwn ? row : plainRow(row))),
    isUnfinished: false,
    error: null,
    tookMs,
  };
}

export function unfinished({ name, promise }: Question): CheckFinding {
  const nothing = { violations: 0, evidence: [], error: null, tookMs: 0 };
  return { name, promise, ...nothing, isUnfinished: true };
}

export function unaskable({ name, promise }: Question, error: unknown): CheckFinding {
  const message = error instanceof Error ? error.message : String(error);
  const nothing = { violations: 0, evidence: [], isUnfinished: false, tookMs: 0 };
  return { name, promise, ...nothing, error: message };
}

/** The same on both engines: one of them returns big integers as text; instants are milliseconds. */
function plainRow(row: Row): Row {
  const entries = Object.entries(row).map(([column, value]) => {
    const plain = typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
    if (column === "what") return [column, value];
    const isInstant = column.endsWith("_at") && typeof plain === "number";
    return [column, isInstant ? new Date(plain).toISOString() : plain];
  });
  return Object.fromEntries(entries) as Row;
}

export function scriptOf(params: {
  readonly engine: "postgres" | "sqlite";
  readonly dialect: Dialect;
  readonly own: readonly OwnCheck[];
  /** Wraps the checks, so that they see one snapshot and change nothing. */
  readonly begin: string;
  readonly how: string;
}): string {
  const { engine, dialect, own, begin, how } = params;
  const listed = engine === "postgres" ? "string_agg" : "group_concat";
  const ours = CHECKS.map((check) => ({
    ...check,
    text: fillIn(checkSql(check, engine), dialect),
  }));
  const parts = [
    ...ours.map(
      ({
        name,
        promise,
        text,
      }) => `select ${quoted(name)} as "check", ${quoted(promise ?? "")} as promise,
  (select count(*) from (${text}) x) as violations,
  (select ${listed}(x.what, ', ') from (select y.what from (${text}) y limit ${EVIDENCE_MAX}) x) as evidence`,
    ),
    ...own.map(
      ({ name, sql }) => `select ${quoted(name)} as "check", '' as promise,
  (select count(*) from (\n${bare(sql)}\n) x) as violations, null as evidence`,
    ),
  ];
  return `-- What the tables show of Holdfast's promises, each with how many things break it; all zero is well.
-- Reads one snapshot and changes nothing. ${how}
${begin};
select * from (
${parts.join("\nunion all\n")}
) checks order by violations desc;
rollback;
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
