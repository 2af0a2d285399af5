// Commands that prepare a database: `migrate` creates the tables or brings them up to date, `move` copies everything from a
// SQLite file into PostgreSQL.

import { existsSync } from "node:fs";
import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import { type MoveResult, moveDatabase } from "../../operations/move.js";
import { textProp } from "../../shared/failure.js";
import { SCHEMA_VERSION } from "../../store/schema/schema.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { databaseFlag } from "../database.js";
import { UsageError } from "../failure.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { ProgressBar } from "../output/progress-bar.js";
import { EXIT, type Shell } from "../shell.js";
import { onSignals } from "../signals.js";

// `holdfast migrate`

type Flags = CommonFlags & { readonly plan?: boolean; readonly expose?: string };

const CREATE_FILE = "create the database file";
const CREATE_TABLES = "create the tables";
const UPGRADE_TABLES = "bring the tables up to date; stop instances of the earlier release first";

export function migrateCommand(call: Call): Command {
  const command = newCommand({
    name: "migrate",
    summary: "Create the tables in the database, or bring them up to date.",
    examples: [
      "migrate --plan",
      "migrate --database postgres://app@localhost/app",
      "migrate --expose public",
    ],
  })
    .option("--plan", "only show what would be done")
    .option("--expose <schema>", "make the SQL functions in this schema too, as holdfast_claim …");
  return act<Flags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    const { database, steps, exposed } = await (flags.plan ? planned : migrated)(flags, shell);
    const text = steps.length === 0 ? "Nothing to do" : `To do: ${steps.join(", ")}`;
    await shell.say(flags.plan ? `${text} (${database}).` : `Up to date: ${database}`);
    if (exposed) await shell.say(`Exposed, and granted to nobody yet: ${exposed.join(", ")}`);
    await shell.printJson({ database, steps, ...(exposed && { exposed }) });
    return EXIT.done;
  });
}

/** The remaining steps. */
type Plan = {
  readonly database: string;
  readonly steps: readonly string[];
  readonly exposed?: readonly string[];
};

/** Changes nothing. A database newer than this version throws an error; it is not a step. */
async function planned({ expose, ...flags }: Flags, shell: Shell): Promise<Plan> {
  const last = expose === undefined ? [] : [`create the SQL functions in the schema ${expose}`];
  return withInstance({ flags, purpose: "existing", needsCode: true, shell }, async (holdfast) => {
    const { database } = holdfast.settings();
    if (isMissingFile(database)) return { database, steps: [CREATE_FILE, CREATE_TABLES, ...last] };
    try {
      await openDatabase(holdfast);
      return { database, steps: last };
    } catch (error) {
      const version = refusedVersion(error);
      if (version === undefined || Number(version) > SCHEMA_VERSION) throw error;
      return { database, steps: [version === null ? CREATE_TABLES : UPGRADE_TABLES, ...last] };
    }
  });
}

function migrated({ expose, ...flags }: Flags, shell: Shell): Promise<Plan> {
  return withInstance({ flags, purpose: "migrate", shell }, async (holdfast) => {
    await openDatabase(holdfast);
    const exposed = expose === undefined ? null : await holdfast.exposeFunctions(expose);
    return { database: holdfast.settings().database, steps: [], ...(exposed && { exposed }) };
  });
}

/** Any read opens the database, and opening brings it up to date. */
async function openDatabase(holdfast: Holdfast): Promise<void> {
  await holdfast.runs.list({ limit: 1 });
}

function isMissingFile(database: string): boolean {
  const [, file] = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(database) ?? [];
  return file !== undefined && file !== ":memory:" && !existsSync(file);
}

/** The version of tables that cannot be used as they are; null: there are none. Undefined: another error. */
function refusedVersion(error: unknown): number | null | undefined {
  if (textProp(error, "code") !== "MIGRATION_REFUSED") return undefined;
  return (error as { readonly version: number | null }).version;
}

// `holdfast move`: if it is killed, the same command continues from the last stored batch.

type MoveFlags = CommonFlags & {
  readonly from?: string;
  readonly to?: string;
  readonly schema?: string;
  readonly yes?: boolean;
};

const count = (number: number) => number.toLocaleString("en-US");

export function moveCommand(call: Call): Command {
  const command = newCommand({
    name: "move",
    summary: "Copy everything from a SQLite file into an empty PostgreSQL database.",
    examples: [
      "move --from sqlite:app.db --to postgres://app@localhost/app",
      "move --from sqlite:app.db --to postgres://app@localhost/app --json",
    ],
  })
    .option("--from <url>", "the SQLite file; it is only read", databaseFlag("--from"))
    .option("--to <url>", "the PostgreSQL database; it must hold no runs yet", databaseFlag("--to"))
    .option("--schema <name>", "the schema there (default: holdfast)")
    .option("--yes", "also while instances run; their changes meanwhile are not copied");
  return act<MoveFlags>(command, call, async ({ from, to, schema, yes, database }) => {
    if (database !== undefined)
      throw new UsageError("move takes --from and --to instead of --database.");
    if (from === undefined || to === undefined)
      throw new UsageError(
        "move needs both ends, for example: move --from sqlite:app.db --to postgres://app@localhost/app",
      );
    if (!from.startsWith("sqlite:") || from === "sqlite::memory:")
      throw new UsageError("--from must be a SQLite file such as sqlite:app.db.");
    if (to.startsWith("sqlite:"))
      throw new UsageError(
        "--to must be a PostgreSQL database such as postgres://app@localhost/app.",
      );
    const { shell } = call;
    const bar = new ProgressBar({ shell });
    const stopped = new AbortController();
    onSignals({ first: () => stopped.abort() });
    const result = await moveDatabase({
      from,
      to,
      ...(schema === undefined ? {} : { schema }),
      evenIfLive: yes === true,
      signal: stopped.signal,
      onProgress: ({ table, moved, total }) => {
        const text = `${count(moved)} of ${count(total)} rows (${table})`;
        bar.show({ done: moved, total, text });
      },
    }).finally(() => bar.end());
    await shell.say(resultText(result));
    await shell.printJson(result);
    return result.moved ? EXIT.done : EXIT.no;
  });
}

function resultText(result: MoveResult): string {
  if (result.moved) {
    const rows = Object.values(result.tables).reduce((sum, each) => sum + each, 0);
    const { heldLeases, heldLocks, resumedAt, tables } = result;
    const held =
      heldLeases + heldLocks === 0
        ? ""
        : `\n${heldLeases} leases of runs and ${heldLocks} locks were held; they expire by the database's clock.`;
    const before = resumedAt === 0 ? "" : `, ${count(resumedAt)} of them before it was interrupted`;
    return (
      `Moved ${count(rows)} rows${before}; both sides count the same in all ${Object.keys(tables).length} tables.${held}` +
      "\nStart your instances with the new database; the file was not changed."
    );
  }
  switch (result.reason) {
    case "live":
      return `Nothing was moved: instances are running (${result.instances.join(", ")}). Stop them and wait a minute, or give --yes.`;
    case "not_empty":
      return `Nothing was moved: the new database has rows in ${result.tables.join(", ")}. Give an empty one, or another --schema.`;
    case "other_move":
      return `Nothing was moved: the new database holds a move from ${result.source}.`;
    case "already_moved":
      return `Nothing to do: ${result.source} has already been moved there.`;
    case "unknown":
      return `Nothing was moved: this version does not know the tables ${result.names.join(", ")}.`;
    case "counts":
      return [
        "The move is not finished: row counts differ. Did a program write meanwhile?",
        ...result.differences.map(
          ({ table, from, to }) => `  ${table}: ${count(from)} in the file, ${count(to)} there`,
        ),
      ].join("\n");
    case "stopped":
      return `Stopped after ${count(result.rows)} rows; the same command continues from there.`;
  }
}
