// Sends one notice to one destination, once, within its time. Answers null, or why it did not arrive, in
// words that hold neither an address nor a secret.

import { type GuardedAnswer, guardedFetch } from "../../remote/dispatch/guard.js";
import { signDispatch } from "../../remote/dispatch/signature.js";
import { describeFailure } from "../../shared/failure.js";
import { storableText } from "../../shared/json.js";
import type { Clock, Network } from "../../shared/ports.js";
import type { AlertNotice } from "../alert-view.js";
import type { Destination } from "./destinations.js";
import { sendMail } from "./email.js";
import { slackBody } from "./slack.js";

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

export function postJson(
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
export function refusalIn(answer: GuardedAnswer): string | null {
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
