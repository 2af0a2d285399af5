// Gives users `holdfast.queues`: lists queues with their lengths, and pauses single ones.

import { ConfigurationError } from "../shared/errors.js";
import { storableText } from "../shared/json.js";
import { requireName } from "../shared/names.js";
import type { QueueRecord } from "../store/queues.js";
import type { Store } from "../store/store.js";
import { type Actor, auditEntry } from "./rules/audit.js";

export type Queue = {
  readonly name: string;
  /** Runs that could be claimed at once. */
  readonly ready: number;
  /** Runs that wait for their time, for a limit or for their schedule. */
  readonly waiting: number;
  readonly running: number;
  readonly pausedAt: Date | null;
  readonly pauseNote: string | null;
};

const NOTE_LENGTH_MAX = 1_000;
/** Resuming an unknown queue creates none. */
const NOBODYS = { ready: 0, waiting: 0, running: 0, pausedAt: null, pauseNote: null };

export class Queues {
  readonly #store: () => Promise<Store>;
  readonly #onChanged: () => void;
  readonly #actor: Actor;

  constructor(params: {
    readonly store: () => Promise<Store>;
    /** Wakes workers: a resumed queue may have runs. */
    readonly onChanged: () => void;
    readonly actor: Actor;
  }) {
    this.#actor = params.actor;
    this.#store = params.store;
    this.#onChanged = params.onChanged;
  }

  /** All queues that have had a run or a pause, by name. */
  async list(): Promise<readonly Queue[]> {
    return (await (await this.#store()).queues.list()).map(toQueue);
  }

  /** Stops claims from this queue; running runs go on. Pausing again keeps the time, and the note if none is given. */
  async pause(name: string, note?: string): Promise<Queue> {
    if (note !== undefined && (typeof note !== "string" || note.length > NOTE_LENGTH_MAX)) {
      const message = `must be a text of at most ${NOTE_LENGTH_MAX} characters, such as "the bank is down"`;
      throw new ConfigurationError([{ field: "queues.pause().note", message }]);
    }
    const kept = note === undefined ? null : storableText(note, NOTE_LENGTH_MAX);
    return this.#set("queues.pause().name", { name, isPaused: true, note: kept });
  }

  /** Allows claims from this queue again. */
  async resume(name: string): Promise<Queue> {
    return this.#set("queues.resume().name", { name, isPaused: false, note: null });
  }

  async #set(
    field: string,
    params: { readonly name: string; readonly isPaused: boolean; readonly note: string | null },
  ): Promise<Queue> {
    const queue = requireName(params.name, field);
    const store = await this.#store();
    const { isPaused, note } = params;
    const verb = isPaused ? "pause" : "resume";
    const audit = auditEntry(this.#actor, { verb, noun: "queue", name: queue, note });
    await store.queues.pause({ queue, isPaused, note, audit });
    if (!params.isPaused) {
      store.wake();
      this.#onChanged();
    }
    const found = (await store.queues.list()).find((each) => each.name === queue);
    return toQueue(found ?? { ...NOBODYS, name: queue });
  }
}

function toQueue({ pausedAt, ...record }: QueueRecord): Queue {
  return { ...record, pausedAt: pausedAt === null ? null : new Date(pausedAt) };
}
