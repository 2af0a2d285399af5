// Simulates the network between remote workers and the instances that serve them: a request or its response may be
// lost, a request may arrive twice or late, or the server may die. The caller tries again.

import type { Remote } from "../../../remote/remote.js";
import { LeaseLostError } from "../../../shared/errors.js";
import type { EventLog } from "../event-log.js";
import { mix } from "../random.js";
import type { SimulatedProcess } from "./process.js";

export type ConnectionWorld = {
  readonly log: EventLog;
  readonly seed: number;
  /** Returns an instance that serves now. */
  server(luck: number): SimulatedProcess | null;
  pass(ms: number): Promise<void>;
  /** Whether anything may still go wrong. */
  isQuiet(): boolean;
  /** Counts a fault of this network. */
  struck(): void;
};

/** The result for the caller: "unknown" after too many tries. */
export type Reply<T> =
  | { readonly kind: "answered"; readonly answer: T }
  | { readonly kind: "refused" }
  | { readonly kind: "unknown" };

type Trouble = "clean" | "request-lost" | "answer-lost" | "sent-twice" | "late" | "answer-late";

export type Call<T> = {
  /** Names the call, for random choices and for the story. */
  readonly name: string;
  readonly send: (remote: Remote) => Promise<T>;
  /** Called for every response of a server, also for those that never reach the caller. */
  readonly onReply?: (reply: Reply<T>) => void;
};

const TRIES = 4;
const RESPONSE_TIMEOUT_MS = 15_000;
const AGAIN_MS = 3_000;

export class RemoteConnection {
  readonly #world: ConnectionWorld;

  constructor(world: ConnectionWorld) {
    this.#world = world;
  }

  async call<T>(call: Call<T>): Promise<Reply<T>> {
    const { pass } = this.#world;
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const luck = mix(this.#world.seed, call.name, attempt);
      const trouble = this.#troubleOf(luck, call.name);
      const lateMs = 500 + (luck % 20_000);
      if (trouble === "late") await pass(lateMs);
      const reply = trouble === "request-lost" ? UNKNOWN : await this.#once(call, luck);
      if (trouble === "answer-late") await pass(lateMs);
      if (trouble === "sent-twice") void pass(lateMs).then(() => this.#once(call, luck + 1));
      if (trouble !== "answer-lost" && reply.kind !== "unknown") return reply;
      await pass(AGAIN_MS);
    }
    return UNKNOWN;
  }

  #troubleOf(luck: number, name: string): Trouble {
    if (this.#world.isQuiet()) return "clean";
    const trouble = TROUBLES[Math.floor(luck / 7) % TROUBLES.length] ?? "clean";
    if (trouble === "clean") return trouble;
    this.#world.struck();
    this.#world.log.mark(`${trouble} on the line of ${name}`);
    this.#world.log.narrate(() => `the call ${name} meets "${trouble}"`);
    return trouble;
  }

  async #once<T>({ name, send, onReply }: Call<T>, luck: number): Promise<Reply<T>> {
    const server = this.#world.server(luck);
    if (!server) return UNKNOWN;
    let reply: Reply<T> | undefined;
    const answered = send(server.holdfast.remote).then(
      (answer): Reply<T> => ({ kind: "answered", answer }),
      (error): Reply<T> => (error instanceof LeaseLostError ? { kind: "refused" } : UNKNOWN),
    );
    const heard = answered.then((answer) => {
      reply = answer;
      this.#world.log.mark(`${name} at ${server.label}: ${answer.kind}`);
      onReply?.(answer);
    });
    // A server that dies never responds.
    await Promise.race([heard, this.#world.pass(RESPONSE_TIMEOUT_MS)]);
    return reply ?? UNKNOWN;
  }
}

const UNKNOWN = { kind: "unknown" } as const;
const TROUBLES: readonly Trouble[] = [
  "clean",
  "request-lost",
  "clean",
  "answer-lost",
  "clean",
  "sent-twice",
  "clean",
  "late",
  "clean",
  "answer-late",
  "clean",
  "clean",
  "answer-lost",
  "clean",
];
