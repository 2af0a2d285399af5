// `holdfast migrate`: makes the tables, or says with `--plan` what it would make.

import { existsSync } from "node:fs";
import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import { textProp } from "../../shared/failure.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, type Shell } from "../shell.js";

type Flags = CommonFlags & { readonly plan?: boolean };

const CREATE_FILE = "create the database file";
const CREATE_TABLES = "create the tables";

export function migrateCommand(call: Call): Command {
  const command = newCommand({
    name: "migrate",
    summary: "Make the tables in the database, or bring them up to date.",
    examples: ["migrate --plan", "migrate --database postgres://app@localhost/app"],
  }).option("--plan", "only say what would be done");
  return act<Flags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    const { database, steps } = await (flags.plan ? planned : migrated)(flags, shell);
    const said = steps.length === 0 ? "Nothing to do" : `To do: ${steps.join(", ")}`;
    await shell.say(flags.plan ? `${said} (${database}).` : `Up to date: ${database}`);
    await shell.answer({ database, steps });
    return EXIT.done;
  });
}

/** What is left to do. */
type Plan = { readonly database: string; readonly steps: readonly string[] };

/** Looks without touching; a newer database than this version knows is an error, not a step. */
async function planned(flags: CommonFlags, shell: Shell): Promise<Plan> {
  return withInstance({ flags, purpose: "look", needsCode: true, shell }, async (holdfast) => {
    const { database } = holdfast.settings();
    if (isMissingFile(database)) return { database, steps: [CREATE_FILE, CREATE_TABLES] };
    try {
      await openDatabase(holdfast);
      return { database, steps: [] };
    } catch (error) {
      if (!isWithoutTables(error)) throw error;
      return { database, steps: [CREATE_TABLES] };
    }
  });
}

function migrated(flags: CommonFlags, shell: Shell): Promise<Plan> {
  return withInstance({ flags, purpose: "migrate", shell }, async (holdfast) => {
    await openDatabase(holdfast);
    return { database: holdfast.settings().database, steps: [] };
  });
}

/** Any question opens the database, and opening brings it up to date. */
async function openDatabase(holdfast: Holdfast): Promise<void> {
  await holdfast.runs.list({ limit: 1 });
}

function isMissingFile(database: string): boolean {
  const [, file] = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(database) ?? [];
  return file !== undefined && file !== ":memory:" && !existsSync(file);
}

function isWithoutTables(error: unknown): boolean {
  const { version } = (error ?? {}) as { version?: unknown };
  return textProp(error, "code") === "MIGRATION_REFUSED" && version === null;
}
