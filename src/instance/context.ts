// What an instance stands on before it has spoken to a database: its configuration and its name, the world
// that it lives in, what it tells through and what it sends through. Of the file system it reads the nearest package.json.

import { hostname } from "node:os";
import { type Actor, codeActor } from "../operations/rules/audit.js";
import { Dispatcher } from "../remote/dispatch/dispatcher.js";
import type { Sends } from "../remote/dispatching.js";
import { systemClock } from "../shared/adapters/clock.js";
import { systemNetwork } from "../shared/adapters/network.js";
import { systemIds, systemRandom } from "../shared/adapters/random.js";
import { rememberSecrets } from "../shared/known-secrets.js";
import type { Clock, Network, Ports } from "../shared/ports.js";
import { unknownVariables } from "../shared/variables.js";
import { storeFor } from "../store/open.js";
import type { Store } from "../store/store.js";
import { Bus } from "../telemetry/bus.js";
import { LentLogger, type Logger, lineLogger } from "../telemetry/log.js";
import { Meters } from "../telemetry/meters.js";
import { Tracing } from "../telemetry/tracing.js";
import type { Config, HoldfastOptions } from "./config.js";
import { configuredSecrets } from "./configured-secrets.js";
import { type LaunchOverrides, readConfigWithin, surroundings } from "./launch-overrides.js";
import { packageName } from "./package-name.js";

/** What tests and the simulator put in place of the real world. */
export type Internals = {
  readonly ports?: Ports;
  readonly store?: (config: Config, ports: Ports) => Store;
  /** False: commands that only look never make a database. */
  readonly mayCreate?: boolean;
  /** What sends runs to targets. */
  readonly sends?: Sends;
  /** What runs and alerts are sent through. */
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
  /** In whose name it changes things by itself. */
  readonly actor: Actor;
  /** The code at hand always wins, and nothing is paused for it. */
  readonly isDevelopment: boolean;
  readonly logger: Logger;
  readonly bus: Bus;
  readonly meters: Meters;
  readonly tracing: Tracing | null;
  readonly sends: Sends;
};

export function newContext(options: HoldfastOptions, internals: Internals): InstanceContext {
  const around = surroundings();
  const config = withApp(readConfigWithin(around, options, process.env), { around, internals });
  rememberSecrets(configuredSecrets(config));
  const ports = internals.ports ?? { clock: systemClock, chance: systemRandom, ids: systemIds() };
  const network = internals.network ?? systemNetwork;
  const store = internals.store?.(config, ports) ?? newStore({ config, ports, around, internals });
  const instanceId = `${hostname()}:${process.pid}:${ports.ids.unique()}`;
  const logger = options.logger ?? around.logger ?? ownLogger(config, ports.clock);
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
    actor: around.actor ?? codeActor(instanceId),
    isDevelopment: around.mayPause === false,
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

/** Instances in a database of a test's own take no name from where the test happens to run. */
function withApp(
  config: Config,
  { around, internals }: { readonly around: LaunchOverrides; readonly internals: Internals },
): Config {
  if (config.app !== null || internals.store) return config;
  const [program, cwd] = [process.argv[1], process.cwd()];
  return { ...config, app: packageName({ folder: around.folder, program, cwd }) };
}

function newStore(params: {
  readonly config: Config;
  readonly ports: Ports;
  readonly around: LaunchOverrides;
  readonly internals: Internals;
}): Store {
  const { config, around, internals } = params;
  const { clock, chance } = params.ports;
  const mayCreate = internals.mayCreate ?? around.mayCreate ?? config.migrate === "auto";
  return storeFor({ ...config, clock, chance, mayCreate });
}

/** To standard error, until a server lends its own. */
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
