// Formats log lines for people: time, a sign, the job, the event and its main facts, on one line. The wording comes from
// telemetry/log.ts. Lines of handlers pass through here too, so control characters are removed.

import { formatDuration } from "../../shared/duration.js";
import type { Logger, LogLevel } from "../../telemetry/log.js";
import { type Colours, cut, plain } from "../shell.js";

type Level = Exclude<LogLevel, "silent">;
type Sign = { readonly sign: string; readonly colour: "green" | "red" | "yellow" | "cyan" | "dim" };

const RANK: Readonly<Record<LogLevel, number>> = {
  debug: 10,
  info: 20,
  warn: 30,
  error: 40,
  critical: 50,
  silent: 100,
};

const SIGN_OF_LEVEL: Readonly<Record<Level, Sign>> = {
  debug: { sign: "·", colour: "dim" },
  info: { sign: "·", colour: "cyan" },
  warn: { sign: "!", colour: "yellow" },
  error: { sign: "✗", colour: "red" },
  critical: { sign: "✗", colour: "red" },
};

const SIGN_OF_EVENT: ReadonlyMap<unknown, Sign> = new Map<unknown, Sign>([
  ["run.started", { sign: "▸", colour: "dim" }],
  ["run.completed", { sign: "✓", colour: "green" }],
  ["run.retrying", { sign: "↻", colour: "yellow" }],
  ["run.postponed", { sign: "↷", colour: "cyan" }],
  ["run.failed", { sign: "✗", colour: "red" }],
  ["run.cancelled", { sign: "⊘", colour: "yellow" }],
  ["run.handed_back", { sign: "↩", colour: "cyan" }],
]);

const JOB_WIDTH = 14;
const VALUE_LENGTH_MAX = 200;

export type PrettyParams = {
  readonly level: LogLevel;
  readonly colours: Colours;
  readonly write: (line: string) => void;
  readonly now: () => Date;
};

export function prettyLogger(params: PrettyParams): Logger {
  const at = (level: Level) => (fields: object, message: string) => {
    if (RANK[level] < RANK[params.level]) return;
    // pino accepts a message without fields, and handlers write for pino.
    const [facts, text] =
      typeof fields === "string" ? [{} as Facts, String(fields)] : [fields as Facts, message];
    // The command prints its own report at the end.
    if (facts.event !== "instance.stopped") params.write(line(level, facts, text ?? "", params));
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    critical: at("critical"),
    isLevelEnabled: (level) => (RANK[level as Level] ?? 0) >= RANK[params.level],
  };
}

type Facts = Readonly<Record<string, unknown>>;

function line(level: Level, facts: Facts, message: string, params: PrettyParams): string {
  const { colours, now } = params;
  const { event, job, run, ...rest } = facts;
  const { sign, colour } = SIGN_OF_EVENT.get(event) ?? SIGN_OF_LEVEL[level];
  const name = typeof job === "string" ? plain(job).padEnd(JOB_WIDTH) : "";
  const details = detailsOf(rest).map(plain).join(", ");
  return [
    colours.dim(clockTime(now())),
    colours[colour](sign),
    colours.bold(name),
    plain(message) + (details === "" ? "" : `: ${details}`),
    typeof run === "string" ? colours.dim(plain(run)) : "",
  ]
    .filter((part) => part !== "")
    .join(" ");
}

function clockTime(date: Date): string {
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}

/** Known facts as text, the most interesting first; the others as name=value. */
function detailsOf(facts: Facts): string[] {
  // The event itself shows whether an error is permanent.
  const { attempt, ranMs, delayMs, retryInMs, error, isPermanent: _, ...others } = facts;
  const details: string[] = [];
  if (typeof attempt === "number" && attempt > 1) details.push(`attempt ${attempt}`);
  if (typeof ranMs === "number") details.push(formatDuration(ranMs));
  for (const ms of [delayMs, retryInMs]) {
    if (typeof ms === "number") details.push(`next try in ${formatDuration(ms)}`);
  }
  if (error !== undefined) details.push(errorText(error));
  for (const [name, value] of Object.entries(others)) {
    const isEmpty = value === undefined || value === null || value === false;
    if (!isEmpty) details.push(`${name}=${cut(valueText(value), VALUE_LENGTH_MAX)}`);
  }
  return details;
}

function errorText(error: unknown): string {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  const text = typeof message === "string" ? message : valueText(error);
  const [first = ""] = text.split("\n", 1);
  const isSaid = typeof code !== "string" || code === "ERROR" || first.includes(code);
  return cut(isSaid ? first : `${code} ${first}`, VALUE_LENGTH_MAX);
}

function valueText(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) {
    return value.length === 0 ? "none" : value.join(" ");
  }
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
