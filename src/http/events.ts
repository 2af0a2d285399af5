// Streams hints {type, id, at} to the dashboard: something changed, read it again. Hints come from this instance's events and from
// one shared poll of the database, which notices changes by people and other instances. A client may get a hint twice. Without
// clients the feed does nothing.

import type { Holdfast } from "../holdfast.js";
import { type ServerInternals, serverInternals } from "../instance/server-internals.js";
import { StoppedError } from "../shared/errors.js";
import type { Clock, Ids, Timer } from "../shared/ports.js";
import { EVENT_NAMES } from "../telemetry/log.js";
import { HttpError } from "./problem.js";

export type Hint = { readonly type: string; readonly id: string | null; readonly at: string };

const CLIENTS_MAX = 100;
/** Hints that are buffered for clients that reconnect. */
const BUFFERED_MAX = 1_000;
/** A larger batch is sent as one hint. */
const BATCH_MAX = 200;
const GATHER_MS = 100;
const POLL_EVERY_MS = 2_000;
const KEEP_ALIVE_MS = 15_000;
/** A client that reconnects within this time misses nothing. */
const LINGER_MS = 30_000;
/** After this the stream ends; the client reconnects and is authorized again. */
const LIFE_MS = 15 * 60_000;
/** Chunks that are buffered for a slow client. */
const BEHIND_MAX = 2_000;
const STREAMED_EVENTS = EVENT_NAMES.filter((name) =>
  /^(run|tick|schedule|lock|instance|alert)\./.test(name),
);

type Client = {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  readonly sinceMs: number;
  /** Throws an HttpError if the client would be refused by now. */
  readonly recheck: () => Promise<void>;
};

type Listening = Pick<Client, "recheck"> & {
  /** The id of the last event that the client had. */
  readonly after: string | null;
  readonly signal: AbortSignal;
};

export class EventFeed {
  readonly #holdfast: Holdfast;
  readonly #internals: ServerInternals;
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #clients = new Set<Client>();
  readonly #encoder = new TextEncoder();
  #timers: Timer[] = [];
  #unsubscribe: (() => void)[] = [];
  /** Identifies a period in which clients are connected: event numbers of another period mean nothing. */
  #period = "";
  #count = 0;
  #buffered: { readonly no: number; readonly hint: Hint }[] = [];
  #pending: Hint[] = [];
  #seen: Awaited<ReturnType<ServerInternals["glance"]>> | null = null;

  constructor(params: { readonly holdfast: Holdfast; readonly clock: Clock; readonly ids: Ids }) {
    this.#holdfast = params.holdfast;
    this.#internals = params.holdfast[serverInternals];
    this.#clock = params.clock;
    this.#ids = params.ids;
  }

  /** A stream for one more client. */
  open({ after, signal, recheck }: Listening): ReadableStream<Uint8Array> {
    if (this.#internals.stopSignal.aborted) throw new StoppedError("events");
    if (this.#clients.size >= CLIENTS_MAX) throw tooMany();
    let client: Client | null = null;
    const leave = () => client && this.#leave(client);
    signal.addEventListener("abort", leave, { once: true });
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          client = { controller, sinceMs: this.#clock.monotonicMs(), recheck };
          this.#begin();
          this.#clients.add(client);
          this.#greet(client, after);
          if (signal.aborted) this.#close(client);
        },
        cancel: () => {
          signal.removeEventListener("abort", leave);
          leave();
        },
      },
      new CountQueuingStrategy({ highWaterMark: BEHIND_MAX }),
    );
  }

  #greet(client: Client, after: string | null): void {
    const missed = after === null ? [] : this.#after(after);
    for (const { no, hint } of missed ?? []) this.#send(client, this.#event({ no, hint }));
    const type = missed === null ? "refetch" : "ready";
    const hint = { type, id: null, at: this.#now() };
    this.#send(client, `retry: 2000\nevent: ${type}\n${this.#event({ no: this.#count, hint })}`);
  }

  /** The hints after that event; null: they are no longer buffered. */
  #after(id: string): readonly { readonly no: number; readonly hint: Hint }[] | null {
    const [period, no] = id.split(".");
    const oldest = this.#buffered[0]?.no ?? this.#count + 1;
    if (period !== this.#period || !/^\d{1,15}$/.test(no ?? "")) return null;
    if (Number(no) < oldest - 1 || Number(no) > this.#count) return null;
    return this.#buffered.filter((each) => each.no > Number(no));
  }

  #begin(): void {
    if (this.#clients.size > 0) return;
    this.#stopTimers();
    if (this.#period === "") {
      this.#period = this.#ids.unique();
      const { stopSignal } = this.#internals;
      const end = () => this.#end();
      stopSignal.addEventListener("abort", end, { once: true });
      this.#unsubscribe = [
        () => stopSignal.removeEventListener("abort", end),
        ...STREAMED_EVENTS.map((name) =>
          this.#holdfast.on(name, (event) => this.#gather(name, idOf(event))),
        ),
      ];
    }
    this.#every(GATHER_MS, () => this.#flush());
    this.#every(KEEP_ALIVE_MS, () => this.#keepAlive());
    this.#every(POLL_EVERY_MS, () => this.#poll());
    void this.#poll();
  }

  /** Repeats `act` until the timers are stopped, even if that happens during `act`. */
  #every(ms: number, act: () => void | Promise<void>): void {
    let timer: Timer | null = null;
    let isOver = false;
    const again = () => {
      timer = this.#clock.timer(ms, async () => {
        await act();
        if (!isOver) again();
      });
    };
    again();
    this.#timers.push({
      cancel: () => {
        isOver = true;
        timer?.cancel();
      },
    });
  }

  /** Changes by people and other instances show only in the tables. The next poll makes up for a failed one. */
  async #poll(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => this.#recheck(client)));
    const seen = await this.#internals.glance().catch(() => null);
    if (seen === null) return;
    const before = this.#seen;
    this.#seen = seen;
    if (before === null) return;
    if (before.newestRun !== seen.newestRun) this.#gather("runs.changed", seen.newestRun);
    if (before.leases !== seen.leases) this.#gather("leases.changed", null);
    if (before.audited !== seen.audited) this.#gather("audit.changed", null);
    if (before.openAlerts !== seen.openAlerts) this.#gather("alerts.changed", null);
  }

  /** Ends the stream of a revoked key or an ended session. While the database cannot be reached, streams stay open. */
  async #recheck(client: Client): Promise<void> {
    try {
      await client.recheck();
    } catch (error) {
      if (error instanceof HttpError) this.#close(client);
    }
  }

  #gather(type: string, id: string | null): void {
    if (this.#pending.length <= BATCH_MAX) this.#pending.push({ type, id, at: this.#now() });
  }

  #flush(): void {
    const isMany = this.#pending.length > BATCH_MAX;
    const hints = isMany ? [{ type: "runs.changed", id: null, at: this.#now() }] : this.#pending;
    this.#pending = [];
    for (const hint of hints) {
      this.#count += 1;
      const entry = { no: this.#count, hint };
      this.#buffered.push(entry);
      for (const client of this.#clients) this.#send(client, this.#event(entry));
    }
    if (this.#buffered.length > BUFFERED_MAX) this.#buffered = this.#buffered.slice(-BUFFERED_MAX);
  }

  #keepAlive(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const client of this.#clients) {
      if (nowMs - client.sinceMs > LIFE_MS) this.#close(client);
      else this.#send(client, ": still here\n\n");
    }
  }

  #event({ no, hint }: { readonly no: number; readonly hint: Hint }): string {
    return `id: ${this.#period}.${no}\ndata: ${JSON.stringify(hint)}\n\n`;
  }

  /** Disconnects a client that does not read; it gets "refetch" when it reconnects. */
  #send(client: Client, text: string): void {
    if ((client.controller.desiredSize ?? 0) <= 0) this.#close(client);
    else client.controller.enqueue(this.#encoder.encode(text));
  }

  #close(client: Client): void {
    this.#leave(client);
    try {
      client.controller.close();
    } catch {
      // The reader cancelled it just now: nothing is left to close.
    }
  }

  #leave(client: Client): void {
    if (!this.#clients.delete(client) || this.#clients.size > 0) return;
    this.#stopTimers();
    this.#every(GATHER_MS, () => this.#flush());
    this.#timers.push(this.#clock.timer(LINGER_MS, () => this.#forget()));
  }

  #end(): void {
    for (const client of [...this.#clients]) this.#close(client);
    this.#forget();
  }

  #forget(): void {
    this.#stopTimers();
    for (const stop of this.#unsubscribe) stop();
    this.#unsubscribe = [];
    this.#period = "";
    this.#count = 0;
    this.#buffered = [];
    this.#pending = [];
    this.#seen = null;
  }

  #stopTimers(): void {
    for (const timer of this.#timers) timer.cancel();
    this.#timers = [];
  }

  #now(): string {
    return new Date(this.#clock.wallMs()).toISOString();
  }
}

/** The id of the thing that an event is about. */
function idOf(event: object): string | null {
  const { run, schedule, lock, alert, instance } = event as Record<string, unknown>;
  const id = run ?? schedule ?? lock ?? alert ?? instance;
  return typeof id === "string" ? id : null;
}

function tooMany(): HttpError {
  return new HttpError({
    status: 429,
    error: "too_many_listeners",
    detail: `At most ${CLIENTS_MAX} clients may listen at once; read the lists instead.`,
    headers: { "retry-after": "30" },
  });
}
