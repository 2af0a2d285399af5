// Reads the configuration of the built-in jobs: `shell` runs a program, `http` sends a request. They are off unless the
// configuration lists programs and origins. An input only chooses among those by name, so that callers who may enqueue or
// schedule cannot make this process run or reach anything else.

import type { JobOptions } from "../runs/rules/job.js";
import { type Duration, durationMs } from "../shared/duration.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { requireName } from "../shared/names.js";
import { gather } from "../shared/problems.js";
import type { StandardSchema, StandardSchemaIssue } from "../shared/schema.js";
import { listShort, quoteShort, refuseUnknownMembers, suggest } from "../shared/suggest.js";
import { refusalOf } from "./dispatch/guard.js";

/** The job options that both accept. */
type CommonOptions = Pick<
  JobOptions,
  "queue" | "priority" | "lease" | "timeout" | "retry" | "onLost" | "concurrency" | "rate"
>;

export type ShellOptions = CommonOptions & {
  /** Programs by name, each with all its arguments; never text for a shell. */
  readonly commands: Readonly<Record<string, readonly string[] | ShellCommandOptions>>;
};

export type ShellCommandOptions = {
  /** The program and its arguments, for example ["pg_dump", "-Fc", "app"]. */
  readonly command: readonly string[];
  /** Where it runs. @default the folder of this process */
  readonly folder?: string | undefined;
  /**
   * Added to what every program gets: PATH, HOME, USER, LOGNAME, SHELL, PWD, TERM, TZ, LANG, LANGUAGE, LC_… and the folder for
   * temporary files. Nothing else of this process's environment is passed on.
   */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Names of variables of this process that it gets as well, for example ["PGHOST", "PGPASSFILE"]. */
  readonly inheritEnv?: readonly string[] | undefined;
  /** How long it may take; then it and its child processes are ended. @default the job's */
  readonly timeout?: Duration | undefined;
};

export type HttpOptions = CommonOptions & {
  /** Origins by name. */
  readonly origins: Readonly<Record<string, string | HttpOriginOptions>>;
};

export type HttpOriginOptions = {
  /** Scheme, host and port, for example "https://api.example.com". */
  readonly url: string;
  /** Sent with every request, for example an authorization. No input can set or see them. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The methods that an input may choose. @default ["GET", "POST", "PUT", "PATCH", "DELETE"] */
  readonly methods?: readonly string[] | undefined;
  /** How long one request may take, until its response is complete. @default "60s" */
  readonly timeout?: Duration | undefined;
  /** Whether it may lead to loopback, private or link-local addresses. @default false */
  readonly allowPrivateNetwork?: boolean | undefined;
};

export type ShellCommand = {
  readonly file: string;
  readonly args: readonly string[];
  readonly folder: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly inheritEnv: readonly string[];
  readonly timeoutMs: number | null;
};

export type HttpOrigin = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly methods: readonly string[];
  readonly timeoutMs: number;
  readonly allowPrivateNetwork: boolean;
};

export type BuiltInJobs = {
  readonly shell: {
    readonly commands: ReadonlyMap<string, ShellCommand>;
    readonly job: CommonOptions;
  } | null;
  readonly http: {
    readonly origins: ReadonlyMap<string, HttpOrigin>;
    readonly job: CommonOptions;
  } | null;
};

export const NO_BUILT_IN_JOBS: BuiltInJobs = { shell: null, http: null };

const COMMON = [
  "queue",
  "priority",
  "lease",
  "timeout",
  "retry",
  "onLost",
  "concurrency",
  "rate",
] as const;
const COMMAND_MEMBERS = ["command", "folder", "env", "inheritEnv", "timeout"];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const REQUEST_TIMEOUT = "60s";
const COMMAND_EXAMPLE = 'a program and its arguments, for example ["pg_dump", "-Fc", "app"]';
const ORIGIN_EXAMPLE = 'an origin such as "https://api.example.com", without path or query';

/** Reads `shell` and `http`; reports all problems at once. */
export function readBuiltInJobs(options: {
  readonly shell?: unknown;
  readonly http?: unknown;
}): BuiltInJobs {
  const problems: Problem[] = [];
  const commands = readNamed(options.shell, "shell", "commands", problems, readCommand);
  const origins = readNamed(options.http, "http", "origins", problems, readOrigin);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return {
    shell: commands && { commands, job: commonOf(options.shell as ShellOptions) },
    http: origins && { origins, job: commonOf(options.http as HttpOptions) },
  };
}

type Reader<T> = (value: unknown, field: string, problems: Problem[]) => T | null;

function readNamed<T>(
  options: unknown,
  field: "shell" | "http",
  member: "commands" | "origins",
  problems: Problem[],
  read: Reader<T>,
): ReadonlyMap<string, T> | null {
  if (options === undefined) return null;
  const named = isPlain(options) ? options[member] : undefined;
  if (!isPlain(options) || !isPlain(named) || Object.keys(named).length === 0) {
    const example =
      field === "shell"
        ? '{ commands: { backup: ["pg_dump", "-Fc", "app"] } }'
        : '{ origins: { api: "https://api.example.com" } }';
    problems.push({ field, message: `must list its ${member} by name, for example ${example}` });
    return null;
  }
  problems.push(...refuseUnknownMembers(options, [member, ...COMMON], field));
  const found = new Map<string, T>();
  for (const [name, value] of Object.entries(named)) {
    const at = `${field}.${member}.${name}`;
    gather(problems, () => requireName(name, at));
    const one = read(value, at, problems);
    if (one !== null) found.set(name, one);
  }
  return found;
}

function readCommand(value: unknown, field: string, problems: Problem[]): ShellCommand | null {
  const options = Array.isArray(value) ? { command: value } : value;
  if (!isPlain(options)) {
    const hint = typeof value === "string" ? " A text would need a shell, and none is used." : "";
    problems.push({ field, message: `must be ${COMMAND_EXAMPLE}.${hint}` });
    return null;
  }
  problems.push(...refuseUnknownMembers(options, COMMAND_MEMBERS, field));
  const { command, folder, env = {}, inheritEnv = [], timeout } = options;
  const isCommand =
    Array.isArray(command) &&
    command.length > 0 &&
    command[0] !== "" &&
    command.every((each) => typeof each === "string" && !each.includes("\0"));
  if (!isCommand)
    problems.push({ field: `${field}.command`, message: `must be ${COMMAND_EXAMPLE}` });
  if (folder !== undefined && (typeof folder !== "string" || folder === ""))
    problems.push({ field: `${field}.folder`, message: 'must be a path such as "/srv/app"' });
  if (!isPlain(env) || !Object.values(env).every((each) => typeof each === "string"))
    problems.push({
      field: `${field}.env`,
      message: 'must be texts by name, for example { TZ: "UTC" }',
    });
  if (!Array.isArray(inheritEnv) || !inheritEnv.every((each) => typeof each === "string"))
    problems.push({
      field: `${field}.inheritEnv`,
      message: 'must be a list of names of variables, for example ["PGHOST"]',
    });
  const timeoutMs = timeout === undefined ? null : duration(timeout, `${field}.timeout`, problems);
  if (!isCommand) return null;
  const [file = "", ...args] = command as readonly string[];
  return {
    file,
    args,
    folder: folder as string | undefined,
    env: env as Readonly<Record<string, string>>,
    inheritEnv: inheritEnv as readonly string[],
    timeoutMs,
  };
}

function readOrigin(value: unknown, field: string, problems: Problem[]): HttpOrigin | null {
  const options = typeof value === "string" ? { url: value } : value;
  if (!isPlain(options)) {
    problems.push({ field, message: `must be ${ORIGIN_EXAMPLE}` });
    return null;
  }
  const members = ["url", "headers", "methods", "timeout", "allowPrivateNetwork"];
  problems.push(...refuseUnknownMembers(options, members, field));
  const { url, headers = {}, methods = METHODS, timeout = REQUEST_TIMEOUT } = options;
  const { allowPrivateNetwork = false } = options;
  const before = problems.length;
  const refuse = (member: string, message: string) =>
    void problems.push({ field: `${field}.${member}`, message });
  if (!isOrigin(url)) refuse("url", `must be ${ORIGIN_EXAMPLE}`);
  if (!isPlain(headers) || !Object.values(headers).every((each) => typeof each === "string"))
    refuse("headers", 'must be texts by name, for example { authorization: "Bearer …" }');
  if (!isMethods(methods)) refuse("methods", 'must be a list such as ["GET", "POST"]');
  if (typeof allowPrivateNetwork !== "boolean")
    refuse("allowPrivateNetwork", "must be true or false");
  const timeoutMs = duration(timeout, `${field}.timeout`, problems);
  if (problems.length > before) return null;
  const origin = {
    url: new URL(url as string).origin,
    headers: headers as Readonly<Record<string, string>>,
    methods: methods as readonly string[],
    timeoutMs: timeoutMs ?? 0,
    allowPrivateNetwork: allowPrivateNetwork as boolean,
  };
  const refusal = refusalOf({ ...origin, method: "GET" });
  if (refusal === null) return origin;
  problems.push({ field, message: `cannot be used: ${refusal}` });
  return null;
}

function isOrigin(url: unknown): boolean {
  if (typeof url !== "string" || !URL.canParse(url)) return false;
  const { origin, href } = new URL(url);
  return href === `${origin}/`;
}

function isMethods(methods: unknown): boolean {
  if (!Array.isArray(methods) || methods.length === 0) return false;
  return methods.every((each) => [...METHODS, "HEAD"].includes(each as string));
}

function commonOf(options: CommonOptions): CommonOptions {
  return Object.fromEntries(
    COMMON.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]),
  );
}

function duration(value: unknown, field: string, problems: Problem[]): number | null {
  return gather<number | null>(
    problems,
    () => durationMs(value as Duration, field, { min: 1 }),
    null,
  );
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// ── inputs that choose among the configured names: checked on enqueue, and again when the run begins, as the configuration
// may have changed since ──

/** A check of one member: what is wrong with it, or null. */
type Check = (value: unknown) => string | null;

/** An object with these members and no other. */
export function chosenInput<Input>(checks: Readonly<Record<string, Check>>): StandardSchema<Input> {
  return {
    "~standard": {
      version: 1,
      vendor: "holdfast",
      validate(value) {
        const issues = issuesOf(value, checks);
        return issues.length > 0 ? { issues } : { value: value as Input };
      },
    },
  };
}

function issuesOf(value: unknown, checks: Readonly<Record<string, Check>>): StandardSchemaIssue[] {
  const known = Object.keys(checks);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return [{ message: `must be an object with ${listShort(known)}` }];
  const given = value as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(given)
    .filter((member) => !known.includes(member))
    .map((member) => ({
      path: [member],
      message: `is not known${meant(member, known)}; known: ${listShort(known)}`,
    }));
  const wrong = Object.entries(checks).flatMap(([member, check]) => {
    const message = check(given[member]);
    return message === null ? [] : [{ path: [member], message }];
  });
  return [...unknown, ...wrong];
}

/** One of these names. */
export function nameOf(what: string, names: readonly string[]): Check {
  return (value) => {
    if (typeof value === "string" && names.includes(value)) return null;
    const hint = typeof value === "string" ? meant(value, names) : "";
    return `must be one of the ${what} that the configuration lists: ${listShort(names)}${hint}`;
  };
}

function meant(word: string, known: readonly string[]): string {
  const found = suggest(word, known);
  return found === undefined ? "" : `; did you mean ${quoteShort(found)}?`;
}
