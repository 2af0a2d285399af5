// Builds the context of an instance for `Holdfast`: its configuration and name, its ports (clock, random, network), its
// store, its log and its dispatcher. Opens no connection; the only file that it reads is the nearest package.json.

import { hostname } from "node:os";
import path from "node:path";
import type { AlertConfig } from "../alerts/alert-options.js";
import type { Destination } from "../alerts/destinations/destinations.js";
import { type Actor, codeActor } from "../operations/rules/audit.js";
import type { BuiltInJobs } from "../remote/built-in-jobs.js";
import { Dispatcher } from "../remote/dispatch/dispatcher.js";
import type { Sends } from "../remote/dispatching.js";
import { systemClock } from "../shared/adapters/clock.js";
import { systemNetwork } from "../shared/adapters/network.js";
import { systemIds, systemRandom } from "../shared/adapters/random.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { headerSecrets, rememberSecrets } from "../shared/known-secrets.js";
import { NAME_LENGTH_MAX } from "../shared/names.js";
import type { Clock, Network, Ports } from "../shared/ports.js";
import { unknownVariables } from "../shared/variables.js";
import { storeFor } from "../store/open.js";
import type { Store } from "../store/store.js";
import { Bus } from "../telemetry/bus.js";
import { fieldsFirst, LentLogger, type Logger, lineLogger } from "../telemetry/log.js";
import { Meters } from "../telemetry/meters.js";
import { Tracing } from "../telemetry/tracing.js";
import { type Config, type Environment, type HoldfastOptions, readConfig } from "./config.js";

/** Replacements for the real world, for tests and the simulator. */
export type Internals = {
  readonly ports?: Ports;
  readonly store?: (config: Config, ports: Ports) => Store;
  /** False for commands that only read: they never create a database. */
  readonly mayCreate?: boolean;
  /** Sends runs to targets. */
  readonly sends?: Sends;
  /** Carries dispatched runs and alerts. */
  readonly network?: Network;
  /** With a store from a test: the program, else none. */
  readonly program?: string;
};

export type InstanceContext = {
  readonly config: Config;
  readonly ports: Ports;
  readonly network: Network;
  /** Not open yet. */
  readonly store: Store;
  /** The file that this process was started with, below the folder of its package; null: unknown. */
  readonly program: string | null;
  /** `host:pid:boot-uuid`. */
  readonly instanceId: string;
  /** The actor in the audit trail for changes that the instance makes by itself. */
  readonly actor: Actor;
  /** True under `holdfast dev`: the local code always wins, and no vanished schedule is paused. */
  readonly isDevelopment: boolean;
  readonly logger: Logger;
  readonly bus: Bus;
  readonly meters: Meters;
  readonly tracing: Tracing | null;
  readonly sends: Sends;
};

export function newContext(options: HoldfastOptions, internals: Internals): InstanceContext {
  const overrides = launchOverrides();
  const config = withApp(readConfigWithin(overrides, options, process.env), {
    overrides,
    internals,
  });
  rememberSecrets(configuredSecrets(config));
  const ports = internals.ports ?? { clock: systemClock, random: systemRandom, ids: systemIds() };
  const network = internals.network ?? systemNetwork;
  const store =
    internals.store?.(config, ports) ?? newStore({ config, ports, overrides, internals });
  const instanceId = `${hostname()}:${process.pid}:${ports.ids.unique()}`;
  const given = options.logger ?? overrides.logger;
  const logger = given ? fieldsFirst(given) : ownLogger(config, ports.clock);
  const meters = new Meters();
  const bus = new Bus({
    logger,
    now: () => new Date(ports.clock.wallMs()),
    onError: options.onError,
    observer: meters,
  });
  if (!internals.store) warnOfUnknownVariables(bus);
  const api = options.telemetry?.opentelemetry;
  return {
    config,
    ports,
    network,
    store,
    program: internals.store ? (internals.program ?? null) : programName(launched(overrides)),
    instanceId,
    actor: overrides.actor ?? codeActor(instanceId),
    isDevelopment: overrides.mayPause === false,
    logger,
    bus,
    meters,
    tracing: api === undefined ? null : new Tracing(api),
    sends: internals.sends ?? newDispatcher({ config, ports, network, bus }),
  };
}

/** Names of variables that this process was warned of. */
const warnedOf = new Set<string>();

/** Once in a process: each of its instances reads the same environment. */
function warnOfUnknownVariables(bus: Bus): void {
  for (const { variable, hint } of unknownVariables(process.env)) {
    if (warnedOf.has(variable)) continue;
    warnedOf.add(variable);
    bus.emit("variable.unknown", { variable, hint });
  }
}

/** With a store from a test the app has no name: the folder in which the test runs must not matter. */
function withApp(
  config: Config,
  { overrides, internals }: { readonly overrides: LaunchOverrides; readonly internals: Internals },
): Config {
  if (config.app !== null || internals.store) return config;
  return { ...config, app: packageName(launched(overrides)) };
}

function launched({ file }: LaunchOverrides): Launched {
  return { file, program: process.argv[1], cwd: process.cwd() };
}

function newStore(params: {
  readonly config: Config;
  readonly ports: Ports;
  readonly overrides: LaunchOverrides;
  readonly internals: Internals;
}): Store {
  const { config, overrides, internals } = params;
  const { clock, random } = params.ports;
  const mayCreate = internals.mayCreate ?? overrides.mayCreate ?? config.migrate === "auto";
  return storeFor({ ...config, clock, random, mayCreate });
}

/** Logs to standard error until a server lends its own logger. */
function ownLogger({ logLevel }: Config, clock: Clock): Logger {
  const write = (line: string) => process.stderr.write(`${line}\n`);
  return new LentLogger(lineLogger(logLevel, write, () => new Date(clock.wallMs())));
}

function newDispatcher({
  config,
  ports: { clock },
  network,
  bus,
}: Pick<InstanceContext, "config" | "ports" | "network" | "bus">): Sends {
  return new Dispatcher({
    ...config.dispatch,
    clock,
    network,
    onCircuit: ({ isOpen, ...what }) =>
      bus.emit(isOpen ? "target.left_alone" : "target.answers", what),
  });
}

// ── overrides by the program that loads the application ──────────────────────────────────────────
// The command line loads a file that makes the `Holdfast`, and its flags have to reach that constructor. They travel
// through a registered symbol, since the file may import another copy of this package than the command line.

export type LaunchOverrides = {
  /** A flag: wins over the option in code. */
  readonly database?: string;
  /** The configuration file. Relative `sqlite:` paths begin at its folder. Left out: at the working directory. */
  readonly file?: string;
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

const KEY = Symbol.for("holdfast.launch-overrides");

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
  const { database, migrate, file, problems = [] } = overrides;
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
  if (file === undefined || typeof config.database !== "string") return config;
  return { ...config, database: absoluteDatabase(config.database, path.dirname(file)) };
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

// ── the secrets of a configuration, by value: no stored or logged text may show one of them ──────

const SECRET_VARIABLE = /pass|pwd|secret|token|key|credential|auth/i;

function configuredSecrets(
  config: Pick<Config, "database" | "dispatch" | "alerts" | "builtIn">,
): readonly string[] {
  const { database, dispatch, alerts, builtIn } = config;
  return [
    ...(typeof database === "string" ? passwordsOf(database) : []),
    ...[...dispatch.targets.values()].flatMap(({ url, secrets }) => [
      ...secrets,
      ...passwordsOf(url),
    ]),
    ...alertSecrets(alerts),
    ...builtInSecrets(builtIn),
  ];
}

function builtInSecrets({ shell, http }: BuiltInJobs): readonly string[] {
  const headers = [...(http?.origins.values() ?? [])].flatMap((each) =>
    headerSecrets(each.headers),
  );
  const variables = [...(shell?.commands.values() ?? [])]
    .flatMap(({ env }) => Object.entries(env))
    .filter(([name]) => SECRET_VARIABLE.test(name))
    .map(([, value]) => value);
  return [...headers, ...variables];
}

function alertSecrets(alerts: AlertConfig): readonly string[] {
  if (alerts === null) return [];
  const { destinations, heartbeat } = alerts;
  const own = heartbeat === null ? [] : [heartbeat.url, heartbeat.token ?? ""];
  return [...own, ...destinations.flatMap(destinationSecrets)];
}

function destinationSecrets(destination: Destination): readonly string[] {
  switch (destination.type) {
    case "webhook":
      return destination.secrets;
    case "slack":
      return [destination.url];
    case "email": {
      const { smtp } = destination;
      if (typeof smtp === "string") return passwordsOf(smtp);
      const { pass } = (smtp.auth ?? {}) as { readonly pass?: unknown };
      return typeof pass === "string" ? [pass] : [];
    }
    case "function":
      return [];
  }
}

/** The password of a URL, as it is written and percent-decoded. */
function passwordsOf(url: string): readonly string[] {
  const [, written] = /^[^:]*:\/\/[^:@/]*:(.*)@/s.exec(url) ?? [];
  if (written === undefined) return [];
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written];
  }
}

// ── the name of the application, from the nearest package.json, and of the program in it ─────────

type Launched = {
  /** The configuration file of a command. */
  readonly file?: string | undefined;
  /** The file that Node was started with. */
  readonly program: string | undefined;
  readonly cwd: string;
};

type Package = { readonly name: string; readonly folder: string };

const packagesByFolder = new Map<string, Package | null>();

/**
 * Finds the nearest package.json with a name: upwards from the folder of a command's configuration file, else from the
 * folder of the program that Node was started with, else from the working directory.
 */
export function packageName(launched: Launched): string | null {
  const { file, cwd } = launched;
  const started = startedFile(launched);
  const own = started === null ? null : packageAbove(path.dirname(started));
  return (own ?? (file === undefined ? packageAbove(cwd) : null))?.name ?? null;
}

/**
 * Names the program within its package: the path of its file below the folder of package.json, such as `dist/web.js`.
 * The name is the same in each release of the package, wherever it is installed.
 */
export function programName(launched: Launched): string | null {
  const started = startedFile(launched);
  if (started === null) return null;
  const folder = packageAbove(path.dirname(started))?.folder ?? path.dirname(started);
  return path.relative(folder, started).split(path.sep).join("/");
}

/** Returns null for a program inside node_modules: it is a tool (a test runner, a TypeScript loader) that runs others. */
function startedFile({ file, program, cwd }: Launched): string | null {
  if (file !== undefined) return path.resolve(cwd, file);
  if (program === undefined || program.split(path.sep).includes("node_modules")) return null;
  return path.resolve(cwd, program);
}

function packageAbove(folder: string): Package | null {
  const known = packagesByFolder.get(folder);
  if (known !== undefined) return known;
  const parent = path.dirname(folder);
  const name = nameIn(folder);
  const above = parent === folder ? null : packageAbove(parent);
  const found = name === null ? above : { name, folder };
  packagesByFolder.set(folder, found);
  return found;
}

/**
 * Returns null if the file cannot be read or has no name, and on a runtime without files. `node:fs` is not imported
 * statically: a bundle for such a runtime could not load it.
 */
function nameIn(folder: string): string | null {
  try {
    const { readFileSync } = process.getBuiltinModule("node:fs");
    const text = readFileSync(path.join(folder, "package.json"), "utf8");
    const { name } = JSON.parse(text) as { name?: unknown };
    const isName = typeof name === "string" && name !== "" && name.length <= NAME_LENGTH_MAX;
    return isName ? name : null;
  } catch {
    return null;
  }
}
