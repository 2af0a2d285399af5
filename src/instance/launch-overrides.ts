// Passes decisions of the surrounding program to the constructor of an instance: the command line loads a file that
// makes the `Holdfast`, and its flags have to reach that constructor. They travel through a registered symbol, since
// the file may import another copy of this package than the command line.

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
  /** Wins over the option in code: a command that only reads changes no tables. */
  readonly migrate?: "auto" | "check";
  /** The user of the command line: the audit trail keeps changes of instances in this name. */
  readonly actor?: Actor;
  /** False for commands that only read: they never create a database. */
  readonly mayCreate?: boolean;
  /** False: schedules that vanished from the code are not paused, as in development. */
  readonly mayPause?: boolean;
  /** Mistakes that the program found in its own flags and environment: reported with all others. */
  readonly problems?: readonly Problem[];
};

const KEY = Symbol.for("holdfast.surroundings");

/** Applies to every instance that this process makes from now on. */
export function setLaunchOverrides(overrides: LaunchOverrides): void {
  Object.assign(globalThis, { [KEY]: overrides });
}

export function launchOverrides(): LaunchOverrides {
  return (globalThis as { [KEY]?: LaunchOverrides })[KEY] ?? {};
}

/** Reads the configuration of an instance under these overrides. */
export function readConfigWithin(
  overrides: LaunchOverrides,
  options: HoldfastOptions,
  env: Environment,
): Config {
  const { database, migrate, folder, problems = [] } = overrides;
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

/** Makes the path of a SQLite URL absolute; returns other URLs as they are. */
export function absoluteDatabase(url: string, folder: string): string {
  const [, file] = /^sqlite:(?!\/|:memory:$)(.+)$/.exec(url) ?? [];
  return file === undefined ? url : `sqlite:${path.resolve(folder, file)}`;
}
