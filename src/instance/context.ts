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
import { headerSecrets, rememberSecrets } from "../shared/known-secrets.js";
import { NAME_LENGTH_MAX } from "../shared/names.js";
import type { Clock, Network, Ports } from "../shared/ports.js";
import { unknownVariables } from "../shared/variables.js";
import { storeFor } from "../store/open.js";
import type { Store } from "../store/store.js";
import { Bus } from "../telemetry/bus.js";
import { LentLogger, type Logger, lineLogger } from "../telemetry/log.js";
import { Meters } from "../telemetry/meters.js";
import { Tracing } from "../telemetry/tracing.js";
import type { Config, HoldfastOptions } from "./config.js";
import { type LaunchOverrides, launchOverrides, readConfigWithin } from "./launch-overrides.js";

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
};

export type InstanceContext = {
  readonly config: Config;
  readonly ports: Ports;
  readonly network: Network;
  /** Not open yet. */
  readonly store: Store;
  /** `host:pid:boot-uuid`. */
  readonly instanceId: string;
  /** The actor in the audit trail for changes that the instance makes by itself. */
  readonly actor: Actor;
  /** True under `holdfast dev`: the code at hand always wins, and no vanished schedule is paused. */
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
  const ports = internals.ports ?? { clock: systemClock, chance: systemRandom, ids: systemIds() };
  const network = internals.network ?? systemNetwork;
  const store =
    internals.store?.(config, ports) ?? newStore({ config, ports, overrides, internals });
  const instanceId = `${hostname()}:${process.pid}:${ports.ids.unique()}`;
  const logger = options.logger ?? overrides.logger ?? ownLogger(config, ports.clock);
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
  const [program, cwd] = [process.argv[1], process.cwd()];
  return { ...config, app: packageName({ folder: overrides.folder, program, cwd }) };
}

function newStore(params: {
  readonly config: Config;
  readonly ports: Ports;
  readonly overrides: LaunchOverrides;
  readonly internals: Internals;
}): Store {
  const { config, overrides, internals } = params;
  const { clock, chance } = params.ports;
  const mayCreate = internals.mayCreate ?? overrides.mayCreate ?? config.migrate === "auto";
  return storeFor({ ...config, clock, chance, mayCreate });
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

// ── the name of the application: the name in the nearest package.json ────────────────────────────

const namesByFolder = new Map<string, string | null>();

/**
 * Finds the nearest package.json with a name: upwards from the folder of a command's configuration file, else from the
 * folder of the program that Node was started with, else from the working directory. A program inside node_modules is
 * a tool (a test runner, a TypeScript loader): then the search begins at the working directory.
 */
export function packageName(params: {
  /** The folder of the configuration file. */
  readonly folder?: string | undefined;
  readonly program: string | undefined;
  readonly cwd: string;
}): string | null {
  const { folder, program, cwd } = params;
  if (folder !== undefined) return nameAbove(folder);
  const isOwn = program !== undefined && !program.split(path.sep).includes("node_modules");
  return (isOwn ? nameAbove(path.dirname(path.resolve(cwd, program))) : null) ?? nameAbove(cwd);
}

function nameAbove(folder: string): string | null {
  const known = namesByFolder.get(folder);
  if (known !== undefined) return known;
  const parent = path.dirname(folder);
  const name = nameIn(folder) ?? (parent === folder ? null : nameAbove(parent));
  namesByFolder.set(folder, name);
  return name;
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
