// Runs an instance for `start` and `dev` until a signal arrives, then stops it gracefully and reports its runs.

import type { Holdfast } from "../holdfast.js";
import { readSecrets } from "../http/credentials.js";
import { createHttpHandler, type HttpHandler } from "../http/handler.js";
import { readTrustedProxies } from "../http/origin.js";
import { refuseOpenHost, type Served, serve } from "../http/server.js";
import { ROUTES } from "../http/wire/contract.js";
import type { StartOptions } from "../instance/config.js";
import { systemClock } from "../shared/adapters/clock.js";
import { formatDuration } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { gather } from "../shared/problems.js";
import { ImpossibleError } from "./failure.js";
import { EXIT, type Shell } from "./shell.js";
import { firstSignal } from "./signals.js";

/** The message from the child of a reloading `dev` after its start. */
export const STARTED = "started";

export async function workUntilSignal(params: {
  readonly holdfast: Holdfast;
  readonly start: StartOptions;
  /** Where HTTP is served; null: nowhere. */
  readonly place: Place | null;
  readonly isDevelopment: boolean;
  /** How long running runs may go on after the signal. */
  readonly graceMs: number;
  readonly shell: Shell;
}): Promise<number> {
  const { holdfast, start, place, isDevelopment, graceMs, shell } = params;
  const bind = place && prepareServing({ holdfast, place, isDevelopment, shell });
  const gone = new Promise<never>((_, reject) => {
    holdfast.on("store.gone", ({ error }) => {
      reject(new ImpossibleError(error.message, error.code));
    });
  });
  const signal = Promise.race([firstSignal(), gone]);
  const rest = stayAwake();
  // Bound before the instance starts: an unusable port fails the start before any run is claimed.
  const binding = bind ? bind() : Promise.resolve(null);
  const started = binding.then(async (bound) => {
    await holdfast.start(start);
    await bound?.open();
    // The parent may be gone by now; `dev` handles that itself.
    process.send?.(STARTED, () => undefined);
  });
  try {
    await Promise.race([started, signal]);
    await signal;
  } catch (error) {
    const bound = await binding.catch(() => null);
    await bound?.served.close();
    await holdfast.stop();
    rest();
    throw error;
  }
  const grace = formatDuration(graceMs);
  await shell.say(`Stopping: running runs have ${grace} to end. A second signal exits at once.`);
  const bound = await binding.catch(() => null);
  bound?.served.drain();
  const { finished, handedBack, abandoned } = await holdfast.stop({ grace: graceMs });
  await bound?.served.close();
  rest();
  await shell.say(`${finished} finished, ${handedBack} handed back, ${abandoned} abandoned`);
  await shell.printJson({ finished, handedBack, abandoned });
  return EXIT.done;
}

/** Keeps the process alive until the returned function is called; waiting for signals alone does not. */
function stayAwake(): () => void {
  const everyMs = 60_000;
  let timer = systemClock.timer(everyMs, again);
  function again() {
    timer = systemClock.timer(everyMs, again);
  }
  return () => timer.cancel();
}

export type ServeFlags = {
  readonly http: boolean;
  readonly host?: string;
  readonly port?: number;
};

const HOST_DEFAULT = "127.0.0.1";
const PORT_DEFAULT = 4780;

export type Place = {
  readonly host: string;
  readonly port: number;
  /** The port is only a default: if it is in use, another one is taken. */
  readonly isAnyPort: boolean;
};

/** Flag, then environment, then default; every wrong value is named at once. Null: no HTTP. */
export function readPlace(
  flags: ServeFlags,
  env: Readonly<Record<string, string | undefined>>,
): Place | null {
  if (!flags.http) return null;
  const problems: Problem[] = [];
  const host = flags.host ?? (env.HOLDFAST_HOST || HOST_DEFAULT);
  const hostField = flags.host === undefined ? "HOLDFAST_HOST" : "--host";
  const isHost = /^[\w.:-]{1,255}$/.test(host);
  if (!isHost) {
    problems.push({
      field: hostField,
      message: "must be a name or an address to listen on, for example 127.0.0.1",
    });
  }
  const configured = env.HOLDFAST_PORT || undefined;
  if (configured !== undefined && (!/^\d{1,5}$/.test(configured) || Number(configured) > 65_535)) {
    problems.push({
      field: "HOLDFAST_PORT",
      message: `must be a whole number from 0 (any free port) to 65535, for example ${PORT_DEFAULT}`,
    });
  }
  problems.push(...secretProblems({ host: isHost ? host : HOST_DEFAULT, hostField, env }));
  gather(problems, () => readTrustedProxies(undefined, env));
  if (problems.length > 0) throw new ConfigurationError(problems);
  const port = flags.port ?? (configured === undefined ? PORT_DEFAULT : Number(configured));
  return { host, port, isAnyPort: flags.port === undefined && configured === undefined };
}

/** Secrets that are wrong, or missing where others can reach the address. */
function secretProblems(params: {
  readonly host: string;
  readonly hostField: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}): readonly Problem[] {
  const { host, hostField, env } = params;
  try {
    refuseOpenHost(host, !readSecrets({}, env).isEmpty, hostField);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems;
  }
}

/** A bound port. All calls but `/healthz` wait until `open`: an instance that has not started serves nobody. */
type Bound = {
  readonly served: Served;
  /** Serves calls from now on, and prints the address. */
  open(): Promise<void>;
};

/**
 * Prepares the server; the function that it returns binds the port. Wrong secrets are refused here, a wrong address or a
 * port in use by that function: both before an instance has done anything.
 */
function prepareServing(params: {
  readonly holdfast: Holdfast;
  readonly place: Place;
  /** Scopes without a secret are open on this machine. */
  readonly isDevelopment: boolean;
  readonly shell: Shell;
}): () => Promise<Bound> {
  const { holdfast, place, isDevelopment, shell } = params;
  const handler = createHttpHandler(holdfast, { openOnLoopback: isDevelopment });
  return async () => {
    let letIn = () => {};
    const opened = new Promise<void>((resolve) => {
      letIn = resolve;
    });
    // Liveness is known before the start has ended: a start that waits for its database need not be repeated.
    let current: HttpHandler = (request, info) =>
      new URL(request.url).pathname === ROUTES.healthz.path
        ? handler(request, info)
        : opened.then(() => handler(request, info));
    const served = await bind((request, info) => current(request, info), place, shell);
    const open = async () => {
      current = handler;
      letIn();
      await shell.say(`Listening on ${served.url}`);
    };
    return { served, open };
  };
}

async function bind(handler: HttpHandler, place: Place, shell: Shell): Promise<Served> {
  const { host, port, isAnyPort } = place;
  try {
    return await serve({ handler, host, port });
  } catch (error) {
    if (!isTaken(error)) throw unusable(place, error);
    if (!isAnyPort) throw taken(place);
  }
  shell.complain(`Port ${port} is in use by another process; using a free one instead.`);
  return serve({ handler, host, port: 0 });
}

function isTaken(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === "EADDRINUSE";
}

function taken({ host, port }: Place): ImpossibleError {
  return new ImpossibleError(
    `Port ${port} of ${host} is in use by another process. Choose another with --port or HOLDFAST_PORT ` +
      "(0: any free one), or start with --no-http.",
  );
}

function unusable({ host, port }: Place, error: unknown): Error {
  const code = (error as { readonly code?: unknown } | null)?.code;
  if (typeof code !== "string" || !code.startsWith("E")) return error as Error;
  return new ImpossibleError(
    `Cannot listen on ${host}, port ${port} (${code}). Choose another with --host and --port, or start ` +
      "with --no-http.",
  );
}
