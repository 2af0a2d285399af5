// Reads the destinations of alerts from `new Holdfast({ alerts: { to: [...] } })`. Reports all problems at once; no message
// repeats an address or a secret, since the address of a Slack webhook is itself a secret.

import { refusalOf } from "../../remote/dispatch/guard.js";
import { type Duration, readDuration } from "../../shared/duration.js";
import type { Problem } from "../../shared/errors.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";
import type { AlertNotice } from "../alert-view.js";

type Shared = {
  /** Its name in the list of deliveries. @default "webhook", "slack", "email" or "function" */
  readonly name?: string;
  /** How long one try may take. @default "10s" */
  readonly timeout?: Duration;
};

export type WebhookDestination = Shared & {
  /** Where alerts are POSTed to, `https://…`. */
  readonly webhook: string;
  /** Signs like a dispatch; several, the newest first, while one rotates. */
  readonly secret: string | readonly string[];
  /** Whether the URL may lead to loopback or private addresses. @default false */
  readonly allowPrivateNetwork?: boolean | undefined;
};

export type SlackDestination = Shared & {
  /** The address of an incoming webhook. It is a secret. */
  readonly slack: string;
  readonly allowPrivateNetwork?: boolean | undefined;
};

export type EmailDestination = Shared & {
  /** The recipients. */
  readonly email: string | readonly string[];
  readonly from: string;
  /** `smtp://user:password@host:587` or `smtps://…`, or options of nodemailer's SMTP transport. */
  readonly smtp: string | Readonly<Record<string, unknown>>;
};

export type FunctionDestination = Shared & { readonly call: (alert: AlertNotice) => unknown };

export type AlertDestination =
  | ((alert: AlertNotice) => unknown)
  | WebhookDestination
  | SlackDestination
  | EmailDestination
  | FunctionDestination;

/** Checked. */
export type Destination = { readonly name: string; readonly timeoutMs: number } & (
  | {
      readonly type: "webhook";
      readonly url: string;
      readonly secrets: readonly string[];
      readonly allowPrivateNetwork: boolean;
    }
  | { readonly type: "slack"; readonly url: string; readonly allowPrivateNetwork: boolean }
  | {
      readonly type: "email";
      readonly to: readonly string[];
      readonly from: string;
      readonly smtp: string | Readonly<Record<string, unknown>>;
    }
  | { readonly type: "function"; readonly call: (alert: AlertNotice) => unknown }
);

type Members = Readonly<Record<string, unknown>>;

const TYPES = { webhook: "webhook", slack: "slack", email: "email", call: "function" } as const;
const KNOWN = {
  webhook: ["webhook", "secret", "allowPrivateNetwork"],
  slack: ["slack", "allowPrivateNetwork"],
  email: ["email", "from", "smtp"],
  call: ["call"],
} as const;
const EXAMPLE =
  '[{ webhook: "https://…", secret: "…" }, { slack: "https://hooks.slack.com/…" }, ' +
  '{ email: "ops@example.com", from: "holdfast@example.com", smtp: "smtp://…" }, (alert) => …]';
const DESTINATIONS_MAX = 20;
const SECRET_LENGTH_MIN = 16;
const TIMEOUT_DEFAULT = "10s";

export function readDestinations(
  value: unknown,
  field: string,
  problems: Problem[],
): readonly Destination[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > DESTINATIONS_MAX) {
    const message = `must be a list of at most ${DESTINATIONS_MAX}, for example ${EXAMPLE}`;
    problems.push({ field, message });
    return [];
  }
  const read = value.flatMap((each: unknown, index) => {
    const destination = readDestination(each, `${field}[${index}]`, problems);
    return destination ? [destination] : [];
  });
  const names = new Map<string, number>();
  return read.map((destination) => {
    const count = (names.get(destination.name) ?? 0) + 1;
    names.set(destination.name, count);
    return count === 1 ? destination : { ...destination, name: `${destination.name}-${count}` };
  });
}

function readDestination(value: unknown, field: string, problems: Problem[]): Destination | null {
  if (typeof value === "function") return readMembers("call", { call: value }, field, problems);
  const kinds = isPlain(value) ? Object.keys(TYPES).filter((kind) => kind in value) : [];
  const [kind] = kinds as (keyof typeof TYPES)[];
  if (!isPlain(value) || kind === undefined || kinds.length > 1) {
    const message = `must be a function or an object with one of webhook, slack, email, call; for example ${EXAMPLE}`;
    problems.push({ field, message });
    return null;
  }
  return readMembers(kind, value, field, problems);
}

function readMembers(
  kind: keyof typeof TYPES,
  value: Members,
  field: string,
  problems: Problem[],
): Destination | null {
  const before = problems.length;
  const refuse = (member: string, message: string) =>
    void problems.push({ field: `${field}.${member}`, message });
  problems.push(...refuseUnknownMembers(value, [...KNOWN[kind], "name", "timeout"], field));
  const { name = TYPES[kind], timeout = TIMEOUT_DEFAULT, allowPrivateNetwork = false } = value;
  if (typeof name !== "string" || !/^[\w.:-]{1,64}$/.test(name))
    refuse("name", 'must be a word of letters, digits and - such as "ops-channel"');
  const timeoutMs = readDuration(timeout, { min: 100, max: 60_000 });
  if (typeof timeoutMs === "string") refuse("timeout", timeoutMs);
  if (typeof allowPrivateNetwork !== "boolean")
    refuse("allowPrivateNetwork", "must be true or false");
  const mayBePrivate = allowPrivateNetwork === true;
  if (kind === "webhook" || kind === "slack") {
    const wrong = urlProblem(value[kind], mayBePrivate);
    if (wrong !== null) refuse(kind, wrong);
  }
  const secrets = typeof value.secret === "string" ? [value.secret] : value.secret;
  if (kind === "webhook" && !areSecrets(secrets))
    refuse(
      "secret",
      `must be a text of at least ${SECRET_LENGTH_MIN} characters, or up to 5 of them`,
    );
  const to = typeof value.email === "string" ? [value.email] : value.email;
  if (kind === "email") {
    if (!Array.isArray(to) || to.length === 0 || !to.every(isMailAddress))
      refuse("email", 'must be an address such as "ops@example.com", or a list of them');
    if (!isMailAddress(value.from))
      refuse("from", 'must be an address such as "holdfast@example.com"');
    if (!isSmtp(value.smtp))
      refuse(
        "smtp",
        'must be "smtp://user:password@host:587", "smtps://…" or { host, port, auth }',
      );
  }
  if (kind === "call" && typeof value.call !== "function")
    refuse("call", "must be a function, for example (alert) => …");
  if (problems.length > before) return null;
  const shared = { name: String(name), timeoutMs: Number(timeoutMs) };
  const url = String(value[kind]);
  switch (kind) {
    case "webhook":
      return {
        ...shared,
        type: "webhook",
        url,
        secrets: secrets as readonly string[],
        allowPrivateNetwork: mayBePrivate,
      };
    case "slack":
      return { ...shared, type: "slack", url, allowPrivateNetwork: mayBePrivate };
    case "email":
      return {
        ...shared,
        type: "email",
        to: to as readonly string[],
        from: String(value.from),
        smtp: value.smtp as string | Members,
      };
    case "call":
      return { ...shared, type: "function", call: value.call as (alert: AlertNotice) => unknown };
  }
}

/** Why an address is refused, without repeating it. */
export function urlProblem(url: unknown, allowPrivateNetwork: boolean): string | null {
  const right = 'must be an address such as "https://alerts.example.com/holdfast"';
  if (typeof url !== "string" || !URL.canParse(url)) return right;
  const refusal = refusalOf({ url, method: "POST", allowPrivateNetwork });
  return refusal === null ? null : `${right}; ${refusal}`;
}

function areSecrets(secrets: unknown): boolean {
  return (
    Array.isArray(secrets) &&
    secrets.length >= 1 &&
    secrets.length <= 5 &&
    secrets.every((each) => typeof each === "string" && each.trim().length >= SECRET_LENGTH_MIN)
  );
}

/** Also accepts `Name <address>`; no line breaks, which could add headers. */
function isMailAddress(value: unknown): boolean {
  return (
    typeof value === "string" &&
    value.length <= 320 &&
    /^[^\r\n\0]*[^\s@<>\0]@[^\s@<>\0]+>?$/.test(value)
  );
}

function isSmtp(value: unknown): boolean {
  if (typeof value === "string")
    return URL.canParse(value) && /^smtps?:$/.test(new URL(value).protocol);
  return isPlain(value) && typeof value.host === "string" && value.host !== "";
}

function isPlain(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
