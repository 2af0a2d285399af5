// Emits the events of an instance to its logger, to listeners of `holdfast.on`, and to `onError`. A listener can never
// disturb the emitter: its errors are reported once. Facts without a listener are not gathered.

import { ConfigurationError } from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import { suggest } from "../shared/suggest.js";
import {
  type Emit,
  EVENT_NAMES,
  type EventName,
  type Events,
  type Logger,
  logEvents,
  logs,
} from "./log.js";

/** One event as a listener gets it. */
export type EventOf<Name extends EventName> = Events[Name] & {
  readonly event: Name;
  /** By the clock of this machine. */
  readonly at: Date;
};

export type Listener<Name extends EventName> = (event: EventOf<Name>) => unknown;

/** Called with every error of the library itself that would otherwise only be logged. */
export type OnError = (
  error: unknown,
  event: { readonly event: EventName; readonly [fact: string]: unknown },
) => unknown;

/** Counts events; called before all listeners. */
export type Observer = {
  wants(name: EventName): boolean;
  hear<Name extends EventName>(name: Name, facts: Events[Name]): void;
};

export class Bus {
  readonly #log: Emit;
  readonly #observer: Observer | undefined;
  readonly #isLogged: (name: EventName) => boolean;
  readonly #now: () => Date;
  readonly #onError: OnError | undefined;
  readonly #listeners = new Map<EventName, Set<Listener<EventName>>>();
  readonly #reported = new WeakSet<object>();

  constructor(params: {
    readonly logger: Logger;
    readonly now: () => Date;
    readonly onError?: OnError | undefined;
    readonly observer?: Observer;
  }) {
    this.#observer = params.observer;
    this.#log = logEvents(params.logger);
    this.#isLogged = logs(params.logger);
    this.#now = params.now;
    this.#onError = params.onError;
  }

  /** Emits an event; `cause` is the error itself, if it is an error of the library and not of a run. */
  readonly emit: Emit = (name, facts, cause) => {
    this.#observer?.hear(name, facts);
    this.#log(name, facts);
    const listeners = this.#listeners.get(name);
    if (listeners) {
      const event = { event: name, at: this.#now(), ...facts };
      for (const listener of [...listeners])
        this.#call(listener, name, () => listener(event as never));
    }
    const onError = this.#onError;
    if (cause !== undefined && onError)
      this.#call(onError, "onError", () => onError(cause, { event: name, ...facts }));
  };

  readonly listens = (name: EventName): boolean =>
    this.#listeners.has(name) || this.#isLogged(name) || this.#observer?.wants(name) === true;

  /** Returns a function that removes the listener. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    if (!EVENT_NAMES.includes(name)) throw unknownEvent(name);
    if (typeof listener !== "function")
      throw new ConfigurationError([
        { field: `on("${name}", listener)`, message: "must be a function, for example (run) => …" },
      ]);
    // A new object, so that the same function added twice is called twice and removed one by one.
    const own = ((event: EventOf<Name>) => listener(event)) as unknown as Listener<EventName>;
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(own));
    return () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.#listeners.get(name) === listeners)
        this.#listeners.delete(name);
    };
  }

  #call(listener: object, name: EventName | "onError", call: () => unknown): void {
    const failed = (error: unknown) => {
      if (this.#reported.has(listener)) return;
      this.#reported.add(listener);
      this.#log("listener.failed", { listener: name, error: describeFailure(error) });
    };
    try {
      const result = call();
      if (result instanceof Promise) result.catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}

function unknownEvent(name: unknown): ConfigurationError {
  const meant = suggest(String(name), EVENT_NAMES);
  const hint = meant === undefined ? "" : ` Did you mean "${meant}"?`;
  return new ConfigurationError([
    {
      field: "on(event)",
      message: `there is no event ${JSON.stringify(String(name).slice(0, 60))}.${hint} Known: ${EVENT_NAMES.join(", ")}`,
    },
  ]);
}
