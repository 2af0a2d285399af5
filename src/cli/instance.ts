// Which `Holdfast` a command uses: the one that a configuration file exports, or a bare one on the
// database that flag, environment or default name. Flag wins over code, code over environment.

import path from "node:path";
import { Holdfast } from "../holdfast.js";
import { setLaunchOverrides } from "../instance/launch-overrides.js";
import { systemClock } from "../shared/adapters/clock.js";
import type { Problem } from "../shared/errors.js";
import { LOG_LEVELS, type Logger, type LogLevel, lineLogger } from "../telemetry/log.js";
import { askedBy } from "./actor.js";
import { CONFIG_NAMES, findConfig, importConfig } from "./config-file.js";
import { ImpossibleError } from "./failure.js";
import { prettyLogger } from "./output/pretty-logs.js";
import type { Shell } from "./shell.js";

/** Flags that every command takes. */
export type CommonFlags = { readonly database?: string; readonly config?: string };

/**
 * look: reads or changes what is there; makes neither a database nor tables.
 * add: makes what is missing, provided that a file says which jobs there are.
 * keep: makes what is missing, provided that somebody said where: a flag, a variable or a file.
 * migrate: makes what is missing, whatever the option in code says.
 */
export type Purpose = "look" | "add" | "keep" | "migrate";

/** Uses an instance for one question, and closes it whatever happens. */
export async function withInstance<T>(
  params: {
    readonly flags: CommonFlags;
    readonly purpose: Purpose;
    /** What it does depends on the code: options of the instance, destinations, checks, jobs. @default by its purpose */
    readonly needsCode?: boolean;
    readonly shell: Shell;
    /** For commands that say some things in their own words. */
    readonly logger?: (usual: Logger) => Logger;
  },
  ask: (holdfast: Holdfast) => Promise<T>,
): Promise<T> {
  const { flags, purpose, shell } = params;
  const file = configFor(params);
  const isLooking = purpose === "look" || (file === null && isWithoutPlace(purpose, flags));
  const usual = loggerFor(shell, { level: "warn", out: process.stderr });
  setLaunchOverrides({
    ...databaseOf(flags),
    ...(file === null ? {} : { folder: path.dirname(file) }),
    ...(isLooking ? { migrate: "check" } : purpose === "migrate" ? { migrate: "auto" } : {}),
    actor: { via: "cli", who: askedBy({}), scope: null, address: null, requestId: null },
    // Standard output belongs to the answer.
    logger: params.logger?.(usual) ?? usual,
    mayCreate: !isLooking,
    problems: logFormatProblems(process.env),
  });
  const holdfast = file === null ? new Holdfast() : await importConfig(file);
  try {
    return await ask(holdfast);
  } finally {
    await holdfast.stop();
  }
}

/**
 * With --database the file of this folder is executed only where the command needs it or --config names it: a folder that
 * somebody else wrote must not run code because somebody looks at a database from there.
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

/** Without a file: whether nobody said where a database may be made. */
function isWithoutPlace(purpose: Purpose, { database }: CommonFlags): boolean {
  if (purpose === "keep") return database === undefined && !process.env.HOLDFAST_DATABASE_URL;
  return purpose === "add";
}

/** The instance of a configuration file, to be started: without a file there is nothing to run. */
export async function loadInstance(params: {
  readonly flags: CommonFlags;
  readonly shell: Shell;
  /** False: schedules that vanished from the code are not paused. */
  readonly mayPause?: boolean;
  /** What was found wrong already. */
  readonly problems?: readonly Problem[];
}): Promise<Holdfast> {
  const { flags, shell, mayPause = true, problems = [] } = params;
  const file = requireConfig(flags.config);
  setLaunchOverrides({
    ...databaseOf(flags),
    folder: path.dirname(file),
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
    `There is no configuration file here (looked for ${CONFIG_NAMES.join(", ")} in ${process.cwd()}). ` +
      "Name one after the command, for example path/to/holdfast.config.mjs. To have one written: holdfast init",
  );
}

function databaseOf({ database }: CommonFlags): { database?: string } {
  return database === undefined ? {} : { database };
}

/** Lines for people; JSON lines where programs read. */
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

/** A wrong one is refused with everything else that is wrong. */
function logFormat(): string {
  return process.env.HOLDFAST_LOG_FORMAT || "pretty";
}

function logFormatProblems(env: Readonly<Record<string, string | undefined>>): Problem[] {
  const asked = env.HOLDFAST_LOG_FORMAT || "pretty";
  if (asked === "pretty" || asked === "json") return [];
  return [{ field: "HOLDFAST_LOG_FORMAT", message: 'must be "pretty" or "json".' }];
}

/** A wrong one is refused by the instance itself, together with everything else that is wrong. */
function logLevel(usual: LogLevel): LogLevel {
  const asked = process.env.HOLDFAST_LOG_LEVEL;
  return LOG_LEVELS.find((level) => level === asked) ?? usual;
}
