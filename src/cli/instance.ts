// Finds the `Holdfast` for a command: the one that a configuration file exports, or a bare one on a database that a flag, the
// environment or the default names. A flag overrides code, code overrides the environment.

import { hostname, userInfo } from "node:os";
import type { Command } from "commander";
import { Holdfast } from "../holdfast.js";
import { setLaunchOverrides } from "../instance/context.js";
import { systemClock } from "../shared/adapters/clock.js";
import type { Problem } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import { LOG_LEVELS, type Logger, type LogLevel, lineLogger } from "../telemetry/log.js";
import { CONFIG_NAMES, findConfig, importConfig } from "./config-file.js";
import { ImpossibleError } from "./failure.js";
import { refusing } from "./flags/read.js";
import { prettyLogger } from "./output/pretty-logs.js";
import type { Shell } from "./shell.js";

/** Flags that every command takes. */
export type CommonFlags = { readonly database?: string; readonly config?: string };

/**
 * existing: reads or changes an existing database; creates neither a database nor tables.
 * add: creates missing tables if a configuration file declares the jobs.
 * keep: creates missing tables if a flag, a variable or a file names the database.
 * migrate: creates missing tables, even if the option `migrate` in code forbids it.
 */
export type Purpose = "existing" | "add" | "keep" | "migrate";

/** Opens an instance for one command and always closes it. */
export async function withInstance<T>(
  params: {
    readonly flags: CommonFlags;
    readonly purpose: Purpose;
    /** The command depends on options in code: destinations, checks, jobs. @default by its purpose */
    readonly needsCode?: boolean;
    readonly shell: Shell;
    /** For commands that word some log lines themselves. */
    readonly logger?: (usual: Logger) => Logger;
  },
  work: (holdfast: Holdfast) => Promise<T>,
): Promise<T> {
  const { flags, purpose, shell } = params;
  const file = configFor(params);
  const usesExisting = purpose === "existing" || (file === null && isWithoutPlace(purpose, flags));
  const usual = loggerFor(shell, { level: "warn", out: process.stderr });
  setLaunchOverrides({
    ...databaseOf(flags),
    ...(file === null ? {} : { file }),
    ...(usesExisting ? { migrate: "check" } : purpose === "migrate" ? { migrate: "auto" } : {}),
    actor: { via: "cli", who: actorName({}), scope: null, address: null, requestId: null },
    // Standard output is for results.
    logger: params.logger?.(usual) ?? usual,
    mayCreate: !usesExisting,
    problems: logFormatProblems(process.env),
  });
  const holdfast = file === null ? new Holdfast() : await importConfig(file);
  try {
    return await work(holdfast);
  } finally {
    await holdfast.stop();
  }
}

/**
 * With --database the file of this folder is executed only where the command needs it or --config names it: a folder that
 * somebody else wrote must not run code because a user reads a database from there.
 */
function configFor(params: {
  readonly flags: CommonFlags;
  readonly purpose: Purpose;
  readonly needsCode?: boolean;
}): string | null {
  const { flags, purpose } = params;
  const { needsCode = purpose === "add" || purpose === "migrate" } = params;
  const isWanted = needsCode || flags.config !== undefined || flags.database === undefined;
  return isWanted ? findConfig(flags.config, process.cwd()) : null;
}

/** Without a file: whether nothing names a database that may be created. */
function isWithoutPlace(purpose: Purpose, { database }: CommonFlags): boolean {
  if (purpose === "keep") return database === undefined && !process.env.HOLDFAST_DATABASE_URL;
  return purpose === "add";
}

/** Loads the instance that a configuration file exports. Throws without a file: there are no jobs to run. */
export async function loadInstance(params: {
  readonly flags: CommonFlags;
  readonly shell: Shell;
  /** False: schedules that vanished from the code are not paused. */
  readonly mayPause?: boolean;
  /** Problems found before. */
  readonly problems?: readonly Problem[];
}): Promise<Holdfast> {
  const { flags, shell, mayPause = true, problems = [] } = params;
  const file = requireConfig(flags.config);
  setLaunchOverrides({
    ...databaseOf(flags),
    file,
    logger: loggerFor(shell, { level: "info", out: process.stdout }),
    mayPause,
    problems: [...problems, ...logFormatProblems(process.env)],
  });
  return importConfig(file);
}

export function requireConfig(named: string | undefined): string {
  const file = findConfig(named, process.cwd());
  if (file !== null) return file;
  throw new ImpossibleError(
    `There is no configuration file here (searched for ${CONFIG_NAMES.join(", ")} in ${process.cwd()}). ` +
      "Name one after the command, for example path/to/holdfast.config.mjs. To create one: holdfast init",
  );
}

function databaseOf({ database }: CommonFlags): { database?: string } {
  return database === undefined ? {} : { database };
}

/** Pretty lines for people, JSON lines for programs. */
function loggerFor(
  shell: Shell,
  { level: usual, out }: { readonly level: LogLevel; readonly out: NodeJS.WriteStream },
): Logger {
  const level = logLevel(usual);
  const now = () => new Date(systemClock.wallMs());
  if (shell.isJson) return lineLogger(level, (line) => process.stderr.write(`${line}\n`), now);
  const write = (line: string) => out.write(`${line}\n`);
  return logFormat() === "json"
    ? lineLogger(level, write, now)
    : prettyLogger({ level, colours: shell.colours, write, now });
}

/** logFormatProblems() reports a wrong value. */
function logFormat(): string {
  return process.env.HOLDFAST_LOG_FORMAT || "pretty";
}

function logFormatProblems(env: Readonly<Record<string, string | undefined>>): Problem[] {
  const configured = env.HOLDFAST_LOG_FORMAT || "pretty";
  if (configured === "pretty" || configured === "json") return [];
  return [{ field: "HOLDFAST_LOG_FORMAT", message: 'must be "pretty" or "json".' }];
}

/** The constructor of the instance reports a wrong value. */
function logLevel(usual: LogLevel): LogLevel {
  const configured = process.env.HOLDFAST_LOG_LEVEL;
  return LOG_LEVELS.find((level) => level === configured) ?? usual;
}

// The actor: stored with versions, pauses and backfills, so that others see who made a change.

export type ActorFlags = { readonly by?: string };

export function withByOption(command: Command): Command {
  return command.option("--by <name>", "who does it (default: you, as user@host)", (text) =>
    refusing(() => requireName(text, "--by")),
  );
}

export function actorName({ by }: ActorFlags): string {
  return by ?? `${userName()}@${hostname()}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "unknown"; // A container may run under a uid without a name.
  }
}
