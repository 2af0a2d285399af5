// The network between workers elsewhere and the instances that serve them: a call may never arrive, be
// answered in vain, arrive twice or late, or meet a server that dies. Whoever asks tries again.

import type { Remote } from "../../../remote/remote.js";
import { LeaseLostError } from "../../../shared/errors.js";
import type { EventLog } from "../event-log.js";
import { mix } from "../random.js";
import type { SimulatedProcess } from "./process.js";

export type LineWorld = {
  readonly chronicle: EventLog;
  readonly seed: number;
  /** An instance that serves at this moment. */
  server(luck: number): SimulatedProcess | null;
  pass(ms: number): Promise<void>;
  /** Whether anything may still go wrong. */
  isQuiet(): boolean;
  /** Something went wrong on the line. */
  struck(): void;
};

/** What a caller knows in the end: "unknown" after it has tried often enough. */
export type Told<T> =
  | { readonly kind: "answered"; readonly answer: T }
  | { readonly kind: "refused" }
  | { readonly kind: "unknown" };

type Trouble = "clean" | "request-lost" | "answer-lost" | "sent-twice" | "late" | "answer-late";

export type Call<T> = {
  /** Names the call, for chance and for the story. */
  readonly name: string;
  readonly ask: (remote: Remote) => Promise<T>;
  /** Hears of every answer that a server gave, also of those that never reach the caller. */
  readonly onAnswer?: (told: Told<T>) => void;
};

const TRIES = 4;
const PATIENCE_MS = 15_000;
const AGAIN_MS = 3_000;

export class ElsewhereLine {
  readonly #world: LineWorld;

  constructor(world: LineWorld) {
    this.#world = world;
  }

  async ask<T>(call: Call<T>): Promise<Told<T>> {
    const { pass } = this.#world;
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      const luck = mix(this.#world.seed, call.name, attempt);
      const trouble = this.#troubleOf(luck, call.name);
      const lateMs = 500 + (luck % 20_000);
      if (trouble === "late") await pass(lateMs);
      const told = trouble === "request-lost" ? UNKNOWN : await this.#once(call, luck);
      if (trouble === "answer-late") await pass(lateMs);
      if (trouble === "sent-twice") void pass(lateMs).then(() => this.#once(call, luck + 1));
      if (trouble !== "answer-lost" && told.kind !== "unknown") return told;
      await pass(AGAIN_MS);
    }
    return UNKNOWN;
  }

  #troubleOf(luck: number, name: string): Trouble {
    if (this.#world.isQuiet()) return "clean";
    const trouble = TROUBLES[Math.floor(luck / 7) % TROUBLES.length] ?? "clean";
    if (trouble === "clean") return trouble;
    this.#world.struck();
    this.#world.chronicle.mark(`${trouble} on the line of ${name}`);
    this.#world.chronicle.tell(() => `the call ${name} meets "${trouble}"`);
    return trouble;
  }

  async #once<T>({ name, ask, onAnswer }: Call<T>, luck: number): Promise<Told<T>> {
    const server = this.#world.server(luck);
    if (!server) return UNKNOWN;
    let told: Told<T> | undefined;
    const answered = ask(server.holdfast.remote).then(
      (answer): Told<T> => ({ kind: "answered", answer }),
      (error): Told<T> => (error instanceof LeaseLostError ? { kind: "refused" } : UNKNOWN),
    );
    const heard = answered.then((answer) => {
      told = answer;
      this.#world.chronicle.mark(`${name} at ${server.label}: ${answer.kind}`);
      onAnswer?.(answer);
    });
    // A server that dies never answers.
    await Promise.race([heard, this.#world.pass(PATIENCE_MS)]);
    return told ?? UNKNOWN;
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
