// Reads the option `alerts` of an instance: which alerts are wanted, where they go, and the address of the heartbeat.
// Reports all problems at once.

import { ConfigurationError, type Problem } from "../shared/errors.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import {
  type AlertDestination,
  type Destination,
  readDestinations,
  urlProblem,
} from "./destinations/destinations.js";
import {
  type AlertRuleOptions,
  type AlertRules,
  DEFAULT_RULES,
  NO_RULES,
  RULE_MEMBERS,
  readAlertRules,
} from "./rules/rules.js";

export type HeartbeatOptions = {
  readonly url: string;
  /** Sent as `Authorization: Bearer …`. */
  readonly token?: string | undefined;
  readonly allowPrivateNetwork?: boolean | undefined;
};

export type AlertOptions = AlertRuleOptions & {
  /** Where alerts go, beside the log. @default nowhere */
  readonly to?: readonly AlertDestination[] | undefined;
  /** POSTed to every minute while the database responds: an external monitor that misses it detects a total outage. */
  readonly heartbeatUrl?: string | HeartbeatOptions | undefined;
};

export type Heartbeat = {
  readonly url: string;
  readonly token: string | null;
  readonly allowPrivateNetwork: boolean;
};

/** Null: alerts are off. */
export type AlertConfig = {
  readonly rules: AlertRules;
  readonly destinations: readonly Destination[];
  readonly heartbeat: Heartbeat | null;
} | null;

const EXAMPLE = '{ stale: "10m", running: { above: 5 }, to: [{ slack: "https://…" }] }';

export function readAlerts(options: unknown): AlertConfig {
  if (options === false) return null;
  if (options === undefined) return { rules: DEFAULT_RULES, destinations: [], heartbeat: null };
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const message = `must be false or an object such as ${EXAMPLE}`;
    throw new ConfigurationError([{ field: "alerts", message }]);
  }
  const problems: Problem[] = refuseUnknownMembers(
    options,
    [...RULE_MEMBERS, "to", "heartbeatUrl"],
    "alerts",
  );
  const members = options as Readonly<Record<string, unknown>>;
  const config = {
    rules: readAlertRules(members, "alerts", problems),
    destinations: readDestinations(members.to, "alerts.to", problems),
    heartbeat: readHeartbeat(members.heartbeatUrl, problems),
  };
  if (problems.length > 0) throw new ConfigurationError(problems);
  return config;
}

function readHeartbeat(value: unknown, problems: Problem[]): Heartbeat | null {
  if (value === undefined) return null;
  const field = "alerts.heartbeatUrl";
  const given = typeof value === "string" ? { url: value } : value;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    const message = 'must be an address such as "https://hc.example.com/ping/…", or { url, token }';
    problems.push({ field, message });
    return null;
  }
  problems.push(...refuseUnknownMembers(given, ["url", "token", "allowPrivateNetwork"], field));
  const { url, token = null, allowPrivateNetwork = false } = given as Record<string, unknown>;
  if (typeof allowPrivateNetwork !== "boolean")
    problems.push({ field: `${field}.allowPrivateNetwork`, message: "must be true or false" });
  const wrong = urlProblem(url, allowPrivateNetwork === true);
  if (wrong !== null) problems.push({ field, message: wrong });
  if (token !== null && (typeof token !== "string" || !/^[\x21-\x7e]{1,1000}$/.test(token)))
    problems.push({ field: `${field}.token`, message: "must be a text without spaces" });
  return {
    url: String(url),
    token: token as string | null,
    allowPrivateNetwork: allowPrivateNetwork === true,
  };
}

/** The configuration without any rule. */
export const NO_ALERTS: NonNullable<AlertConfig> = {
  rules: NO_RULES,
  destinations: [],
  heartbeat: null,
};
