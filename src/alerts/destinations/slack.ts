// The body that Slack's incoming webhooks take. Names come from users: what Slack would read as a
// mention, a link or a channel call is escaped as its documentation says.

import { type AlertNotice, headline } from "../alert-view.js";
import { subjectText } from "../rules/alert.js";

const MESSAGE_LENGTH_MAX = 2_500;

export function slackBody(notice: AlertNotice): string {
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
