// Sends runs to the services that execute them: one signed POST per attempt, as many at a time as a target allows, none
// while its circuit is open. Returns the outcome as a plain value; dispatching.ts decides what it means for the run. Never
// sends a request twice.

import type { Mode } from "../../runs/rules/run.js";
import { type StoredError, storedError } from "../../shared/failure.js";
import { encodeResult } from "../../shared/json.js";
import { hideSecrets } from "../../shared/known-secrets.js";
import type { Clock, Network } from "../../shared/ports.js";
import { redactBody } from "../../shared/redact.js";
import { Semaphore } from "../../shared/semaphore.js";
import { classifyFailure } from "../../worker/rules/classify.js";
import * as breaker from "./breaker.js";
import { type GuardedResponse, guardedFetch } from "./guard.js";
import { callbackToken, signDispatch } from "./signature.js";
import type { DispatchConfig, Target } from "./targets.js";

/** One attempt of a run, as its worker gets it. */
export type DispatchedRun = {
  readonly id: string;
  readonly fence: number;
  readonly attempt: number;
  readonly job: string;
  readonly input: unknown;
  readonly idempotencyKey: string;
  readonly leaseMs: number;
  readonly timeoutMs: number;
  readonly mode: Mode;
  /** The tick's own time; null unless it was scheduled. */
  readonly nominalAt: string | null;
  readonly tags: readonly string[];
  /** What earlier attempts stored: finished steps, and open waits. */
  readonly steps: readonly unknown[];
  readonly waits: readonly unknown[];
  readonly hasMoreSteps: boolean;
};

export type DispatchOrder = {
  readonly target: string;
  readonly run: DispatchedRun;
  readonly signal: AbortSignal;
  /** The W3C trace context that the worker continues. */
  readonly traceparent?: string;
};

export type DispatchResult =
  /** 200: the worker is done. `result` is JSON text. */
  | { readonly kind: "completed"; readonly result: string }
  /** 202: the worker continues on its own; its heartbeats renew the lease from now on. */
  | { readonly kind: "accepted" }
  | {
      readonly kind: "failed";
      readonly error: StoredError;
      readonly isPermanent: boolean;
      readonly retryAfterMs?: number;
      /** The response, if there was one. */
      readonly reply?: Reply;
    }
  /** It may have been received: nothing may be sent again before the lease has run out. */
  | { readonly kind: "unknown"; readonly reason: string }
  /** It certainly was not received. `pauseMs`: when to try again. */
  | { readonly kind: "not_delivered"; readonly reason: string; readonly pauseMs: number };

/** A worker's response: the status, and the beginning of its body. */
export type Reply = { readonly status: number; readonly text: string };

export type DispatcherParams = DispatchConfig & {
  readonly clock: Clock;
  readonly network: Network;
  readonly onCircuit: (change: {
    readonly target: string;
    readonly isOpen: boolean;
    readonly reason: string;
  }) => void;
};

/** The callbacks of a worker, each under the run's own address. */
const CALLBACKS = [
  ...(["heartbeat", "progress", "items", "logs", "steps", "wait", "complete", "fail"] as const),
];
const EXCERPT_MAX = 2_000;
/** Statuses of a target that is unavailable at the moment. */
const UNAVAILABLE: ReadonlySet<number> = new Set([502, 503, 504]);

type Post = { readonly target: Target; readonly turns: Semaphore; circuit: breaker.Circuit };

export class Dispatcher {
  readonly #params: DispatcherParams;
  readonly #posts: ReadonlyMap<string, Post>;

  constructor(params: DispatcherParams) {
    this.#params = params;
    this.#posts = new Map(
      [...params.targets].map(([name, target]) => [
        name,
        { target, turns: new Semaphore(target.concurrency), circuit: breaker.CLOSED },
      ]),
    );
  }

  /** How many runs may be sent to this target now: none while its circuit is open, one to probe it. */
  room(target: string): number {
    return breaker.roomOf(this.#post(target).circuit, this.#nowMs());
  }

  async dispatch(order: DispatchOrder): Promise<DispatchResult> {
    const { target, signal } = order;
    const post = this.#post(target);
    const giveBack = await post.turns.take(signal);
    if (!giveBack)
      return { kind: "not_delivered", reason: "not sent: the run was stopped", pauseMs: 0 };
    try {
      if (breaker.roomOf(post.circuit, this.#nowMs()) < 1)
        return this.#undelivered(post, `not sent: too many failures of ${target} in a row`);
      post.circuit = breaker.sent(post.circuit);
      const response = await this.#send(post.target, order);
      this.#note(post, response, signal);
      return this.#read(post, response);
    } finally {
      giveBack();
    }
  }

  #send(target: Target, { run, signal, traceparent }: DispatchOrder): Promise<GuardedResponse> {
    const { clock, network, publicUrl } = this.#params;
    const { id: runId, ...rest } = run;
    const base = `${publicUrl}/api/runs/${encodeURIComponent(runId)}`;
    const body = JSON.stringify({
      runId,
      ...rest,
      callbacks: Object.fromEntries(CALLBACKS.map((verb) => [verb, `${base}/${verb}`])),
      token: callbackToken({ runId, fence: run.fence }, target.secrets[0] ?? ""),
    });
    // One POST for one grant, and a fence is never used again: the pair names this request.
    const signed = signDispatch({
      id: `${runId}-${run.fence}`,
      body,
      secrets: target.secrets,
      nowMs: clock.wallMs(),
    });
    return guardedFetch(
      {
        url: target.url,
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json",
          ...(traceparent === undefined ? {} : { traceparent }),
          ...signed,
        },
        body,
        timeoutMs: target.timeoutMs,
        signal,
        allowPrivateNetwork: target.allowPrivateNetwork,
      },
      { network, clock },
    );
  }

  #note(post: Post, response: GuardedResponse, signal: AbortSignal): void {
    const before = post.circuit;
    const isHealthy = response.kind === "answered" && !UNAVAILABLE.has(response.status);
    // A refused or a withdrawn request shows nothing about the target.
    const isConclusive =
      response.kind === "answered" || (response.kind !== "refused" && !signal.aborted);
    if (isHealthy) post.circuit = breaker.responded(before);
    else if (isConclusive) post.circuit = breaker.failed(before, this.#nowMs());
    else post.circuit = breaker.withdrawn(before, this.#nowMs());
    const isOpen = post.circuit.state === "open";
    const wasOpen = before.state !== "closed";
    if (!isConclusive || isOpen === wasOpen) return;
    this.#params.onCircuit({ target: post.target.name, isOpen, reason: reasonOf(response) });
  }

  #read(post: Post, response: GuardedResponse): DispatchResult {
    switch (response.kind) {
      case "unknown":
        return response;
      case "not_delivered":
        return this.#undelivered(post, response.reason);
      case "refused":
        // The address stays wrong until the configuration or the name changes.
        return failed({ code: "TARGET_REFUSED", message: response.reason, isPermanent: true });
      case "answered":
        return readResponse(response);
    }
  }

  #undelivered(post: Post, reason: string): DispatchResult {
    const pauseMs = breaker.pauseMs(post.circuit, this.#nowMs());
    return { kind: "not_delivered", reason, pauseMs };
  }

  #post(target: string): Post {
    const post = this.#posts.get(target);
    if (!post) throw new TypeError(`There is no target ${target}.`);
    return post;
  }

  #nowMs(): number {
    return this.#params.clock.monotonicMs();
  }
}

type Responded = Extract<GuardedResponse, { readonly kind: "answered" }>;

function readResponse(response: Responded): DispatchResult {
  const { status, headers } = response;
  const reply = { status, text: excerptOf(response) };
  if (status === 200) return completed(response);
  if (status === 202) return { kind: "accepted" };
  if (status >= 400 && status <= 599) {
    const { class: failureClass, retryAfterMs } = classifyFailure({ status, headers });
    return failed({
      code: `HTTP_${status}`,
      message: `The worker answered with status ${status}${reply.text === "" ? "." : `: ${reply.text}`}`,
      reply,
      isPermanent: failureClass === "permanent",
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  }
  const why = status >= 300 && status < 400 ? "; redirects are not followed" : "";
  return failed({
    code: `HTTP_${status}`,
    message: `The worker answered with status ${status}, which is neither 200 nor 202${why}.`,
    reply,
    isPermanent: true,
  });
}

/**
 * Reads a 200. A result that is too large is cut like a handler's. A body that is not JSON did not come from a worker
 * (but from a proxy or another service), and sending the run again would give the same.
 */
function completed(response: Responded): DispatchResult {
  const { body, isCut } = response;
  const text = textOf(body);
  if (isCut) {
    const result = {
      $truncated: true,
      bytes: body.byteLength,
      preview: hideSecrets(text).slice(0, 1_024),
    };
    return { kind: "completed", result: encodeResult(result) };
  }
  if (text.trim() === "") return { kind: "completed", result: "null" };
  try {
    return { kind: "completed", result: encodeResult(JSON.parse(text)) };
  } catch {
    const message = "The worker answered 200 with a body that is not JSON.";
    const reply = { status: 200, text: excerptOf(response) };
    return failed({ code: "ANSWER_NOT_JSON", message, reply, isPermanent: true });
  }
}

function failed(params: {
  readonly code: string;
  readonly message: string;
  readonly isPermanent: boolean;
  readonly retryAfterMs?: number;
  readonly reply?: Reply;
}): DispatchResult {
  const { code, message, ...rest } = params;
  return { kind: "failed", error: storedError({ code, name: "DispatchError", message }), ...rest };
}

/** The beginning of the body, without named secrets: it is stored and shown. */
function excerptOf({ body }: Responded): string {
  return redactBody(textOf(body).trim(), EXCERPT_MAX);
}

function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body);
}

function reasonOf(response: GuardedResponse): string {
  return response.kind === "answered" ? `status ${response.status}` : response.reason;
}
