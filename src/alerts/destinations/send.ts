// Sends one notice to one destination, once, within its time. Answers null, or why it did not arrive, in
// words that hold neither an address nor a secret.

import { type GuardedAnswer, guardedFetch } from "../../remote/dispatch/guard.js";
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
      // The same alert told again has the same id: a receiver that keeps ids can tell.
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
): Promise<GuardedAnswer> {
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

/** Why this is no success, or null. */
function refusalIn(answer: GuardedAnswer): string | null {
  if (answer.kind !== "answered") return answer.reason;
  const isDone = answer.status >= 200 && answer.status < 300;
  return isDone ? null : `answered with status ${answer.status}`;
}

/** A function that never answers is not waited for. */
function within<T>(timeoutMs: number, sending: Promise<T>, { clock, signal }: Post): Promise<T> {
  return new Promise((resolve, reject) => {
    const over = (what: string) => reject(new Error(what));
    const onAbort = () => over("stopped before an answer came");
    const timer = clock.timer(timeoutMs, () => over(`no answer within ${timeoutMs} ms`));
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    sending.then(resolve, reject).finally(() => {
      timer.cancel();
      signal?.removeEventListener("abort", onAbort);
    });
  });
}

// E-mail by SMTP, through nodemailer, which is loaded only where an e-mail destination is configured.
// Its errors may repeat what was sent to the server: only their codes leave this file.

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
    const answer = numberProp(error, "responseCode");
    return answer === undefined ? `SMTP failed: ${code}` : `SMTP failed: ${code} ${answer}`;
  } finally {
    transport.close();
  }
}

/** Plain text alone: a name is never markup in it. */
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
    // Mail programs show what belongs to one alert together.
    headers: { "X-Holdfast-Alert": id, "Auto-Submitted": "auto-generated" },
  };
}

/** A start with an e-mail destination and without nodemailer is refused: an alert must not find it out. */
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

// The heartbeat to somewhere outside: one POST after each look that succeeded. Whoever misses it there
// knows that nobody looks any more, which nobody in here could tell.

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
