// E-mail by SMTP, through nodemailer, which is loaded only where an e-mail destination is configured.
// Its errors may repeat what was sent to the server: only their codes leave this file.

import { ConfigurationError } from "../../shared/errors.js";
import { numberProp, textProp } from "../../shared/thrown.js";
import { type AlertNotice, headline } from "../alert-view.js";
import type { Destination } from "./destinations.js";

type EmailDestination = Extract<Destination, { readonly type: "email" }>;
type Nodemailer = typeof import("nodemailer");

const SUBJECT_LENGTH_MAX = 200;

export async function sendMail(
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
export function mailOf(notice: AlertNotice): {
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
