// `holdfast init`: writes a project that runs, with an example job or with the lines of a crontab.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { cronSchedule } from "../../schedules/cron/cron.js";
import { type CrontabNote, readCrontab } from "../../schedules/cron/crontab.js";
import { ConfigurationError } from "../../shared/errors.js";
import { textProp } from "../../shared/failure.js";
import { act, type Call, newCommand } from "../command.js";
import { ImpossibleError, UsageError } from "../failure.js";
import {
  crontabConfig,
  exampleConfig,
  kindOfFolder,
  type NamedEntry,
  nameEntries,
  type Written,
  writeProject,
} from "../init/project.js";
import type { CommonFlags } from "../instance.js";
import { packageVersion } from "../package-files.js";
import { EXIT, plain, type Shell } from "../shell.js";

type Flags = CommonFlags & {
  /** True: the crontab of this user. */
  readonly fromCrontab?: string | true;
  readonly withUser?: boolean;
  readonly force?: boolean;
};

const SYSTEM_CRONTAB = /^\/etc\/(crontab$|cron\.d\/)/;
const STDIN = 0;

export function initCommand(call: Call): Command {
  const command = newCommand({
    name: "init",
    summary: "Write a project that runs: a configuration file, an example job, scripts.",
    examples: [
      "init",
      "init --from-crontab",
      "init jobs --from-crontab /etc/crontab",
      "crontab -l | holdfast init --from-crontab -",
    ],
  })
    .argument("[folder]", "where (default: here)")
    .option(
      "--from-crontab [file]",
      "a schedule for every line of it; - reads standard input (default: your own)",
    )
    .option("--with-user", "it has a column for the user, as /etc/crontab has")
    .option("--force", "overwrite existing holdfast.config and .env.example");
  return act<Flags>(command, call, async (flags, folder = ".") => {
    const { shell } = call;
    if (flags.withUser && flags.fromCrontab === undefined)
      throw new UsageError("--with-user needs --from-crontab.");
    const kind = kindOfFolder(folder);
    const crontab = flags.fromCrontab === undefined ? null : translated(flags);
    const written = writeProject({
      folder,
      kind,
      config: crontab === null ? exampleConfig(kind) : crontabConfig(crontab.entries),
      isForced: flags.force ?? false,
      version: packageVersion(),
    });
    await say(shell, folder, written, crontab);
    await shell.printJson({
      ...written,
      ...(crontab === null
        ? {}
        : {
            schedules: crontab.entries.map(({ name, cron, zone, line }) => ({
              name,
              cron,
              timezone: zone,
              line,
            })),
            notes: crontab.notes,
          }),
    });
    return EXIT.done;
  });
}

type Translated = {
  readonly entries: readonly NamedEntry[];
  readonly notes: readonly CrontabNote[];
};

function translated({ fromCrontab, withUser }: Flags): Translated {
  const file = fromCrontab === true ? null : (fromCrontab ?? null);
  const hasUser = withUser ?? SYSTEM_CRONTAB.test(file === null ? "" : path.resolve(file));
  const { entries, notes } = readCrontab(textOf(file), { hasUser });
  const hostZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const named = nameEntries(entries, hostZone);
  const refused = named.flatMap((entry) => {
    const why = refusalOf(entry);
    return why === null ? [] : [{ line: entry.line, text: `${entry.cron} …`, why }];
  });
  const lines = new Set(refused.map(({ line }) => line));
  const kept = named.filter(({ line }) => !lines.has(line));
  const all = [...notes.filter(({ line }) => !lines.has(line)), ...refused];
  if (kept.length === 0)
    throw new ImpossibleError(
      [
        "No line of the crontab can become a schedule; nothing was written.",
        ...all.map(noteText),
      ].join("\n"),
      "CRONTAB_EMPTY",
    );
  return { entries: kept, notes: all.sort((a, b) => a.line - b.line) };
}

function refusalOf({ cron, zone }: NamedEntry): string | null {
  try {
    cronSchedule({ cron, timezone: zone });
    return null;
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems.map(({ field, message }) => `${field} ${message}`).join(" ");
  }
}

function textOf(file: string | null): string {
  if (file === "-") return readFileSync(STDIN, "utf8");
  try {
    if (file !== null) return readFileSync(file, "utf8");
    return execFileSync("crontab", ["-l"], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    const reason = textProp(error, "stderr")?.trim() || textProp(error, "code") || String(error);
    const what = file === null ? "`crontab -l`" : file;
    throw new ImpossibleError(
      `${what} could not be read (${reason}). Give a file, or - for standard input: holdfast init --from-crontab /etc/crontab`,
      "CRONTAB_UNREADABLE",
    );
  }
}

async function say(
  shell: Shell,
  folder: string,
  { written, changed, kept, next }: Written,
  crontab: Translated | null,
): Promise<void> {
  const { colours } = shell;
  const at = (file: string) => path.join(folder, file);
  const lines = [
    ...written.map((file) => `${colours.green("wrote")}  ${at(file)}`),
    ...changed.map(
      ({ file, added }) => `${colours.green("added")}  to ${at(file)}: ${added.join(", ")}`,
    ),
    ...kept.map((file) => colours.dim(`kept   ${at(file)} as it is`)),
    ...(crontab?.entries ?? []).map(
      ({ line, name, cron, zone }) => `line ${line}: schedule ${name}, ${cron}, ${zone}`,
    ),
    ...(crontab?.notes ?? []).map((note) => colours.yellow(noteText(note))),
    "",
    `Next: ${[...(folder === "." ? [] : [`cd ${folder}`]), ...next].join(" && ")}`,
  ];
  await shell.say(lines.join("\n"));
}

function noteText({ line, text, why }: CrontabNote): string {
  return `line ${line} (${plain(text)}): ${why}`;
}
