// Serves the HTTP API beside an instance: decides where to listen, and handles a port in use.

import type { Holdfast } from "../holdfast.js";
import { type Answerer, createAnswerer } from "../http/handler.js";
import { readSecrets } from "../http/secrets.js";
import { refuseOpenHost, type Served, serve } from "../http/server.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { ImpossibleError } from "./failure.js";
import type { Shell } from "./shell.js";

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
  const asked = env.HOLDFAST_PORT || undefined;
  if (asked !== undefined && (!/^\d{1,5}$/.test(asked) || Number(asked) > 65_535)) {
    problems.push({
      field: "HOLDFAST_PORT",
      message: `must be a whole number from 0 (any free port) to 65535, for example ${PORT_DEFAULT}`,
    });
  }
  problems.push(...secretProblems({ host: isHost ? host : HOST_DEFAULT, hostField, env }));
  if (problems.length > 0) throw new ConfigurationError(problems);
  const port = flags.port ?? (asked === undefined ? PORT_DEFAULT : Number(asked));
  return { host, port, isAnyPort: flags.port === undefined && asked === undefined };
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

/** A bound port. Calls wait until `open`: an instance that has not started serves nobody. */
export type Bound = {
  readonly served: Served;
  /** Serves calls from now on, and prints the address. */
  open(): Promise<void>;
};

/**
 * Prepares the server; the function that it returns binds the port. Wrong secrets are refused here, a wrong address or a
 * port in use by that function: both before an instance has done anything.
 */
export function prepareServing(params: {
  readonly holdfast: Holdfast;
  readonly place: Place;
  /** Scopes without a secret are open on this machine. */
  readonly isDevelopment: boolean;
  readonly shell: Shell;
}): () => Promise<Bound> {
  const { holdfast, place, isDevelopment, shell } = params;
  const answerer = createAnswerer(holdfast, { openOnLoopback: isDevelopment });
  return async () => {
    let letIn = () => {};
    const opened = new Promise<void>((resolve) => {
      letIn = resolve;
    });
    let current: Answerer = (ask, info) => opened.then(() => answerer(ask, info));
    const served = await bind((ask, info) => current(ask, info), place, shell);
    const open = async () => {
      current = answerer;
      letIn();
      await shell.say(`Listening on ${served.url}`);
    };
    return { served, open };
  };
}

async function bind(answerer: Answerer, place: Place, shell: Shell): Promise<Served> {
  const { host, port, isAnyPort } = place;
  try {
    return await serve({ answerer, host, port });
  } catch (error) {
    if (!isTaken(error)) throw unusable(place, error);
    if (!isAnyPort) throw taken(place);
  }
  shell.complain(`Port ${port} is taken by another process; a free one is used instead.`);
  return serve({ answerer, host, port: 0 });
}

function isTaken(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === "EADDRINUSE";
}

function taken({ host, port }: Place): ImpossibleError {
  return new ImpossibleError(
    `Port ${port} of ${host} is taken by another process. Choose another with --port or HOLDFAST_PORT ` +
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
