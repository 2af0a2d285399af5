// `holdfast move`: takes everything from a SQLite file into PostgreSQL. Killed in the middle, the same
// command goes on where it was.

import type { Command } from "commander";
import { type MoveAnswer, moveDatabase } from "../../operations/move.js";
import { act, type Call, newCommand } from "../command.js";
import { databaseFlag } from "../database.js";
import { UsageError } from "../flags/usage.js";
import type { CommonFlags } from "../instance.js";
import { ProgressBar } from "../output/progress-bar.js";
import { EXIT } from "../shell.js";
import { onSignals } from "../work.js";

type Flags = CommonFlags & {
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
    .option("--yes", "also while instances live; what they do meanwhile stays behind");
  return act<Flags>(command, call, async ({ from, to, schema, yes, database }) => {
    if (database !== undefined)
      throw new UsageError("move takes --from and --to in place of --database.");
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
    const answer = await moveDatabase({
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
    await shell.say(inWords(answer));
    await shell.answer(answer);
    return answer.moved ? EXIT.done : EXIT.no;
  });
}

function inWords(answer: MoveAnswer): string {
  if (answer.moved) {
    const rows = Object.values(answer.tables).reduce((sum, each) => sum + each, 0);
    const { heldLeases, heldLocks, resumedAt, tables } = answer;
    const held =
      heldLeases + heldLocks === 0
        ? ""
        : `\n${heldLeases} leases of runs and ${heldLocks} locks were held; they run out by the database's clock.`;
    const before = resumedAt === 0 ? "" : `, ${count(resumedAt)} of them before it was interrupted`;
    return (
      `Moved ${count(rows)} rows${before}; both sides count the same in all ${Object.keys(tables).length} tables.${held}` +
      "\nStart your instances with the new database; the file was not changed."
    );
  }
  switch (answer.reason) {
    case "live":
      return `Nothing was moved: instances live (${answer.instances.join(", ")}). Stop them and wait a minute, or give --yes.`;
    case "not_empty":
      return `Nothing was moved: the new database has rows in ${answer.tables.join(", ")}. Give an empty one, or another --schema.`;
    case "other_move":
      return `Nothing was moved: the new database holds a move from ${answer.source}.`;
    case "already_moved":
      return `Nothing to do: ${answer.source} has been moved there already.`;
    case "unknown":
      return `Nothing was moved: this version does not know what becomes of ${answer.names.join(", ")}.`;
    case "counts":
      return [
        "The move is not finished: rows differ. Did somebody write meanwhile?",
        ...answer.differences.map(
          ({ table, from, to }) => `  ${table}: ${count(from)} in the file, ${count(to)} there`,
        ),
      ].join("\n");
    case "stopped":
      return `Stopped after ${count(answer.rows)} rows; the same command goes on from there.`;
  }
}
