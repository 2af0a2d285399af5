// Sends one notice to one destination, once, within its timeout. Returns null, or the reason of a failure, which never
// contains an address or a secret.

import { type GuardedResponse, guardedFetch } from "../../remote/dispatch/guard.js";
import { signDispatch } from "../../remote/dispatch/signature.js";
import { ConfigurationError } from "../../shared/errors.js";
import { describeFailure, numberProp, textProp } from "../../shared/failure.js";
import { storableText } from "../../shared/json.js";
import type { Clock, Network } from "../../shared/ports.js";
import type { Heartbeat } from "../alert-options.js";
import { type AlertNotice, headline } from "../alert-view.js";
import { subjectText } from "../rules/alert.js";
import type { Destination } from "./destinations.js";

export type Post = {
  readonly clock: Clock;
  readonly network: Network;
  readonly signal?: AbortSignal;
};

const ERROR_LENGTH_MAX = 300;

export async function sendNotice(
  destination: Destination,
  notice: AlertNotice,
  post: Post,
): Promise<string | null> {
  try {
    return await within(destination.timeoutMs, send(destination, notice, post), post);
  } catch (error) {
    return storableText(describeFailure(error).message, ERROR_LENGTH_MAX);
  }
}

async function send(
  destination: Destination,
  notice: AlertNotice,
  post: Post,
): Promise<string | null> {
  switch (destination.type) {
    case "webhook": {
      const { event, ...alert } = notice;
      const body = JSON.stringify({ event: `alert.${event}`, alert });
      // A repeated notice has the same id: receivers that store ids can detect it.
      const id = `${notice.id}-${event}`;
      const nowMs = post.clock.wallMs();
      const signed = signDispatch({ id, body, secrets: destination.secrets, nowMs });
      return refusalIn(await postJson(destination, { body, headers: signed }, post));
    }
    case "slack":
      return refusalIn(await postJson(destination, { body: slackBody(notice) }, post));
    case "email":
      return sendMail(destination, notice);
    case "function":
      await destination.call(notice);
      return null;
  }
}

function postJson(
  to: {
    readonly url: string;
    readonly timeoutMs: number;
    readonly allowPrivateNetwork: boolean;
  },
  { body, headers }: { readonly body: string; readonly headers?: Readonly<Record<string, string>> },
  { clock, network, signal }: Post,
): Promise<GuardedResponse> {
  return guardedFetch(
    {
      url: to.url,
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
      timeoutMs: to.timeoutMs,
      allowPrivateNetwork: to.allowPrivateNetwork,
      ...(signal ? { signal } : {}),
    },
    { clock, network },
  );
}

/** Why the response is not a success, or null. */
function refusalIn(response: GuardedResponse): string | null {
  if (response.kind !== "answered") return response.reason;
  const isDone = response.status >= 200 && response.status < 300;
  return isDone ? null : `answered with status ${response.status}`;
}

/** Does not wait for a function that never returns. */
function within<T>(timeoutMs: number, sending: Promise<T>, { clock, signal }: Post): Promise<T> {
  return new Promise((resolve, reject) => {
    const over = (what: string) => reject(new Error(what));
    const onAbort = () => over("stopped before a response arrived");
    const timer = clock.timer(timeoutMs, () => over(`no response within ${timeoutMs} ms`));
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    sending.then(resolve, reject).finally(() => {
      timer.cancel();
      signal?.removeEventListener("abort", onAbort);
    });
  });
}

// ── e-mail by SMTP, through nodemailer, which is loaded only if an e-mail destination is configured. Its errors may repeat
// what was sent to the server: only their codes leave this file. ──

type EmailDestination = Extract<Destination, { readonly type: "email" }>;
type Nodemailer = typeof import("nodemailer");

const SUBJECT_LENGTH_MAX = 200;

async function sendMail(
  destination: EmailDestination,
  notice: AlertNotice,
): Promise<string | null> {
  const { from, to, smtp, timeoutMs } = destination;
  const { createTransport } = await nodemailer();
  const limits = {
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  };
  const options = typeof smtp === "string" ? { url: smtp, ...limits } : { ...limits, ...smtp };
  const transport = createTransport(options);
  try {
    await transport.sendMail({ from, to: [...to], ...mailOf(notice) });
    return null;
  } catch (error) {
    const code = textProp(error, "code") ?? "ESMTP";
    const response = numberProp(error, "responseCode");
    return response === undefined ? `SMTP failed: ${code}` : `SMTP failed: ${code} ${response}`;
  } finally {
    transport.close();
  }
}

/** Plain text only, so that no name becomes markup. */
function mailOf(notice: AlertNotice): {
  readonly subject: string;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
} {
  const { firstAt, resolvedAt, id } = notice;
  const lines = [
    notice.message,
    "",
    `kind      ${notice.kind}`,
    `severity  ${notice.severity}`,
    `since     ${firstAt.toISOString()}`,
    ...(resolvedAt === null ? [] : [`resolved  ${resolvedAt.toISOString()}`]),
    `alert     ${id}`,
  ];
  return {
    subject: headline(notice)
      .replace(/[\r\n]+/g, " ")
      .slice(0, SUBJECT_LENGTH_MAX),
    text: `${lines.join("\n")}\n`,
    // Mail programs group the messages of one alert.
    headers: { "X-Holdfast-Alert": id, "Auto-Submitted": "auto-generated" },
  };
}

/** Refuses a start with an e-mail destination but without nodemailer, before an alert needs it. */
export async function requireMailer(destinations: readonly Destination[]): Promise<void> {
  if (destinations.some(({ type }) => type === "email")) await nodemailer();
}

async function nodemailer(): Promise<Nodemailer> {
  try {
    const loaded = (await import("nodemailer")) as { readonly default?: Nodemailer } & Nodemailer;
    return loaded.default ?? loaded;
  } catch (cause) {
    if (textProp(cause, "code") !== "ERR_MODULE_NOT_FOUND") throw cause;
    const message = "e-mail needs the package nodemailer; install it: npm install nodemailer";
    throw new ConfigurationError([{ field: "alerts.to", message }]);
  }
}

// The body that Slack's incoming webhooks take. Names come from users: what Slack would read as a
// mention, a link or a channel call is escaped as its documentation says.

const MESSAGE_LENGTH_MAX = 2_500;

function slackBody(notice: AlertNotice): string {
  const head = escaped(headline(notice));
  const message = escaped(notice.message.slice(0, MESSAGE_LENGTH_MAX));
  const facts = `${notice.severity} · since ${notice.firstAt.toISOString()}`;
  return JSON.stringify({
    // For notifications, and for clients that show no blocks.
    text: `${head}: ${message}`,
    blocks: [
      section(`*${notice.event === "resolved" ? "Resolved" : "Alert"}* ${head}`),
      section(message),
      { type: "context", elements: [plainText(`${subjectText(notice.subject)} · ${facts}`)] },
    ],
  });
}

function section(text: string) {
  return { type: "section", text: { type: "mrkdwn", text, verbatim: true } };
}

function plainText(text: string) {
  return { type: "plain_text", text: text.slice(0, 1_000), emoji: false };
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

// The heartbeat to an external monitor: one POST after each successful pass. A monitor that misses it knows that no instance
// evaluates alerts any more, which no instance could report.

const TIMEOUT_MS = 10_000;

/** Null, or why it did not arrive. */
export async function sendHeartbeat(
  { url, token, allowPrivateNetwork }: Heartbeat,
  facts: { readonly app: string | null; readonly instance: string; readonly openAlerts: number },
  post: Post,
): Promise<string | null> {
  const body = JSON.stringify({ ...facts, at: new Date(post.clock.wallMs()).toISOString() });
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const to = { url, allowPrivateNetwork, timeoutMs: TIMEOUT_MS };
  return refusalIn(await postJson(to, { body, headers }, post));
}
