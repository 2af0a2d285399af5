// What the program around an instance decides for it: the command line loads a file that makes the
// `Holdfast`, and its flags have to reach that constructor. They travel through a registered symbol,
// since the file may import another copy of this package than the command line itself is.

import path from "node:path";
import type { Actor } from "../operations/rules/audit.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import type { Logger } from "../telemetry/log.js";
import { type Config, type Environment, type HoldfastOptions, readConfig } from "./config.js";

export type LaunchOverrides = {
  /** A flag: wins over the option in code. */
  readonly database?: string;
  /** Where relative `sqlite:` paths begin. Left out: the working directory. */
  readonly folder?: string;
  /** For instances whose code gives none. */
  readonly logger?: Logger;
  /** Wins over the option in code: a command that only looks changes no tables. */
  readonly migrate?: "auto" | "check";
  /** Who is at the command line: what instances change is kept in that name. */
  readonly actor?: Actor;
  /** False: commands that only look never make a database. */
  readonly mayCreate?: boolean;
  /** False: schedules that vanished from the code are not paused, as in development. */
  readonly mayPause?: boolean;
  /** What the program found wrong with its own flags and surroundings: named with everything else. */
  readonly problems?: readonly Problem[];
};

const KEY = Symbol.for("holdfast.surroundings");

/** Holds for every instance that this process makes from now on. */
export function setLaunchOverrides(surroundings: LaunchOverrides): void {
  Object.assign(globalThis, { [KEY]: surroundings });
}

export function surroundings(): LaunchOverrides {
  return (globalThis as { [KEY]?: LaunchOverrides })[KEY] ?? {};
}

/** The configuration of an instance that is made in these surroundings. */
export function readConfigWithin(
  around: LaunchOverrides,
  options: HoldfastOptions,
  env: Environment,
): Config {
  const { database, migrate, folder, problems = [] } = around;
  const config = withProblems(problems, () =>
    readConfig(
      {
        ...options,
        ...(database === undefined ? {} : { database }),
        ...(migrate === undefined ? {} : { migrate }),
      },
      env,
    ),
  );
  if (folder === undefined || typeof config.database !== "string") return config;
  return { ...config, database: absoluteDatabase(config.database, folder) };
}

function withProblems(problems: readonly Problem[], read: () => Config): Config {
  let config: Config;
  try {
    config = read();
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new ConfigurationError([...problems, ...error.problems]);
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return config;
}

/** The same address with an absolute path, where it is one of a SQLite file. */
export function absoluteDatabase(url: string, folder: string): string {
  const [, file] = /^sqlite:(?!\/|:memory:$)(.+)$/.exec(url) ?? [];
  return file === undefined ? url : `sqlite:${path.resolve(folder, file)}`;
}
