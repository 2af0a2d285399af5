// Receives the stream of hints, or polls if there is none. A hint refetches the queries that it concerns, at most once
// a second; without a stream they are refetched every few seconds.

import type { QueryClient } from "@tanstack/react-query";
import { BASE_PATH } from "../api/call.js";

/** live: hints arrive. polling: no stream is served, everything is refetched regularly. */
export type Connection = "connecting" | "live" | "polling" | "lost";

const GATHER_MS = 800;
const POLL_MS = 4_000;
/** Also polls now and then while hints arrive, because no hint may report a change of another instance. */
const SLOW_MS = 20_000;

/** Which queries a hint concerns, by the first word of its type. */
const CONCERNS: Readonly<Record<string, readonly string[]>> = {
  run: ["runs", "run", "timeline", "queues", "schedules", "schedule", "overview"],
  runs: ["runs", "run", "timeline", "queues", "schedules", "schedule", "overview"],
  leases: ["runs", "run", "timeline", "queues", "instances", "overview"],
  tick: ["timeline", "schedules", "schedule", "overview"],
  schedule: ["timeline", "schedules", "schedule", "audit"],
  lock: ["locks"],
  instance: ["instances"],
  alert: ["alerts", "overview"],
  alerts: ["alerts", "overview"],
  // The queries that changes by people may affect; runs have hints of their own.
  audit: [
    ...["audit", "pause", "timeline", "schedules", "schedule", "runs", "run"],
    ...["queues", "locks", "instances", "alerts"],
  ],
};

type Listener = (nouns: ReadonlySet<string> | null) => void;
const listeners = new Set<Listener>();

/** Calls back when something may have changed, with the affected queries, or null for all. */
export function onChanges(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export class Feed {
  readonly #client: QueryClient;
  readonly #onChange: (connection: Connection) => void;
  #source: EventSource | null = null;
  #timer: number | null = null;
  #poll: number | null = null;
  readonly #concerned = new Set<string>();
  #connection: Connection = "connecting";

  constructor(client: QueryClient, onChange: (connection: Connection) => void) {
    this.#client = client;
    this.#onChange = onChange;
  }

  open(hasEvents: boolean): void {
    this.close();
    if (!hasEvents) {
      this.#say("polling");
      return;
    }
    const source = new EventSource(`${BASE_PATH}/api/events`);
    this.#source = source;
    source.addEventListener("open", () => this.#say("live"));
    source.addEventListener("ready", () => this.#say("live"));
    source.addEventListener("refetch", () => {
      this.#say("live");
      this.#changed(null);
    });
    source.addEventListener("message", (event) => this.#hear(String(event.data)));
    source.addEventListener("error", () => {
      // It reconnects by itself unless the server refused it for good.
      if (source.readyState === EventSource.CLOSED) {
        this.#say("lost");
        window.setTimeout(() => this.#source === source && this.open(true), POLL_MS);
      } else this.#say("connecting");
    });
    this.#say("connecting");
  }

  close(): void {
    this.#source?.close();
    this.#source = null;
    if (this.#poll !== null) window.clearInterval(this.#poll);
    if (this.#timer !== null) window.clearTimeout(this.#timer);
    this.#poll = null;
    this.#timer = null;
  }

  #hear(data: string): void {
    try {
      const [noun = ""] = String((JSON.parse(data) as { type?: string }).type).split(".");
      for (const name of CONCERNS[noun] ?? []) this.#concerned.add(name);
    } catch {
      return;
    }
    this.#timer ??= window.setTimeout(() => {
      this.#timer = null;
      const names = new Set(this.#concerned);
      this.#concerned.clear();
      this.#changed(names);
    }, GATHER_MS);
  }

  #say(connection: Connection): void {
    const wasCut = this.#connection === "lost" || this.#connection === "connecting";
    if (connection === "live" && wasCut && this.#poll !== null) this.#changed(null);
    this.#connection = connection;
    this.#onChange(connection);
    if (this.#poll !== null) window.clearInterval(this.#poll);
    const everyMs = connection === "live" ? SLOW_MS : POLL_MS;
    this.#poll = window.setInterval(() => {
      if (document.visibilityState === "visible") this.#changed(null);
    }, everyMs);
  }

  #changed(names: ReadonlySet<string> | null): void {
    for (const listener of listeners) listener(names);
    void this.#client.invalidateQueries({
      predicate: ({ queryKey: [first] }) => names === null || names.has(String(first)),
    });
  }
}
