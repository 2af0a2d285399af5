// GET /api/events: hints that something changed, at least once.

import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createHandler } from "../../src/http/handler.js";
import { serverInternals } from "../../src/instance/server-internals.js";
import { PermanentError } from "../../src/shared/errors.js";
import { until } from "../support/until.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

type Told = { readonly name: string; readonly lastId: string; readonly hint: { type: string } };

/** Reads a stream of events, one by one. */
class Listener {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(response: Response) {
    this.#reader = (response.body as ReadableStream<Uint8Array>).getReader();
  }

  /** The next event; null at the end of the stream. */
  async next(): Promise<Told | null> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
        const data = field("data");
        if (data === "") continue;
        return { name: field("event"), lastId: field("id"), hint: JSON.parse(data) };
      }
      const { done, value } = await this.#reader.read();
      if (done) return null;
      this.#text += this.#decoder.decode(value, { stream: true });
    }
  }

  async until(type: string): Promise<Told> {
    for (;;) {
      const told = await this.next();
      if (told === null) throw new Error(`The stream ended before ${type} came.`);
      if (told.hint.type === type) return told;
    }
  }

  leave(): Promise<void> {
    return this.#reader.cancel();
  }
}

describe.each(DATABASES)("the event stream on %s", (database) => {
  let house: House;

  beforeEach(async () => {
    // One failure is enough for an alert.
    house = await newHouse(database, { options: { alerts: { failureRate: { atLeast: 1 } } } });
    house.holdfast.job("study", { run: () => undefined });
  });
  afterEach(() => house.end());

  async function connect(options: { lastId?: string; method?: string; secret?: string } = {}) {
    const { lastId, method = "GET", secret = SECRETS.read } = options;
    const headers = {
      authorization: `Bearer ${secret}`,
      ...(lastId === undefined ? {} : { "last-event-id": lastId }),
    };
    return house.handler(new Request("http://127.0.0.1:4780/api/events", { method, headers }));
  }

  test("sends events of this instance: type, subject and time", async () => {
    const response = await connect();
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const listener = new Listener(response);
    await listener.until("ready");
    const { id } = await house.holdfast.enqueue("study", null);
    await house.holdfast.tick();
    const { hint } = await listener.until("run.completed");
    expect(hint).toEqual({ type: "run.completed", id, at: expect.stringMatching(/Z$/) });
    await listener.leave();
  });

  test("sends changes by other instances, from a poll of the database", async () => {
    const other = house.another();
    other.job("study", { run: () => undefined });
    await other.enqueue("study", 1);
    const listener = new Listener(await connect());
    await listener.until("ready");
    let isHeard = false;
    const heard = listener.until("runs.changed").then((told) => {
      isHeard = true;
      return told;
    });
    // The first look is what later ones are compared with, so one run may come too early to be told.
    await until("a run of another instance is told", async () => {
      await other.enqueue("study", 2);
      return isHeard;
    });
    expect((await heard).hint).toMatchObject({ id: expect.any(String) });
    await other.tick();
    await listener.until("leases.changed");
    await listener.leave();
    await other.stop({ grace: 0 });
  });

  test("sends changes by people, through any instance, and changes of alerts", async () => {
    const other = house.another();
    other.job("bad", {
      retry: { attempts: 1 },
      run: () => {
        throw new PermanentError("never");
      },
    });
    const listener = new Listener(await connect());
    await listener.until("ready");
    const heard = async (type: string, change: () => Promise<unknown>) => {
      let isHeard = false;
      const told = listener.until(type).then(() => {
        isHeard = true;
      });
      // The first look is what later ones are compared with, so one change may come too early to be told.
      await until(`${type} is told`, async () => {
        await change();
        return isHeard;
      });
      await told;
    };
    await heard("audit.changed", () => other.queues.pause(crypto.randomUUID()));
    await heard("audit.changed", () => house.holdfast.pause({ note: crypto.randomUUID() }));
    await house.holdfast.resume();
    await other.enqueue("bad", null);
    await heard("alerts.changed", () => other.tick());
    await listener.leave();
    await other.stop({ grace: 0 });
  });

  test("continues after Last-Event-ID, and sends refetch if the hints are no longer buffered", async () => {
    const first = new Listener(await connect());
    const { lastId } = await first.until("ready");
    await first.leave();
    const { id } = await house.holdfast.enqueue("study", null);
    await house.holdfast.tick();
    const second = new Listener(await connect({ lastId }));
    expect((await second.until("run.completed")).hint).toMatchObject({ id });
    await second.leave();
    for (const unknown of ["nonsense", `${lastId}9`, "another.1"]) {
      const late = new Listener(await connect({ lastId: unknown }));
      expect(await late.next()).toMatchObject({ name: "refetch", hint: { type: "refetch" } });
      await late.leave();
    }
  });

  test("ends when the instance stops, and is refused afterwards", async () => {
    const listener = new Listener(await connect());
    await listener.until("ready");
    await house.holdfast.stop({ grace: 0 });
    let told = await listener.next();
    while (told !== null) told = await listener.next();
    expect((await connect()).status).toBe(503);
  });

  test("needs the scope read, bounds its clients, and gives no stream to HEAD", async () => {
    expect((await connect({ secret: SECRETS.trigger })).status).toBe(403);
    const head = await connect({ method: "HEAD" });
    expect([head.status, head.body]).toEqual([200, null]);
    const listeners: Listener[] = [];
    for (let count = 0; count < 100; count += 1) listeners.push(new Listener(await connect()));
    const refused = await connect();
    expect([refused.status, await refused.text()]).toEqual([
      429,
      expect.stringContaining("too_many_listeners"),
    ]);
    await listeners.pop()?.leave();
    await new Listener(await connect()).until("ready");
  });
});

test("a handler listens to its instance only while it has a client", async () => {
  const house = await newHouse("sqlite");
  const handlers = Array.from({ length: 20 }, () =>
    createHandler(house.holdfast, { secrets: SECRETS }),
  );
  const listening = () =>
    getEventListeners(house.holdfast[serverInternals].stopSignal, "abort").length;
  expect(listening()).toBe(0);
  const headers = { authorization: `Bearer ${SECRETS.read}` };
  const stream = await handlers[0]?.(new Request("http://127.0.0.1/api/events", { headers }));
  expect(listening()).toBe(1);
  await house.end();
  expect(await stream?.text()).toContain("event: ready");
  expect(listening()).toBe(0);
});

test("a client that disconnects before the stream begins is no listener", async () => {
  const house = await newHouse("sqlite");
  const headers = { authorization: `Bearer ${SECRETS.read}` };
  const signal = AbortSignal.abort();
  const request = new Request("http://127.0.0.1/api/events", { headers, signal });
  expect(await (await house.handler(request)).text()).toContain("event: ready");
  await house.end();
});

test("events: false serves no stream and describes none", async () => {
  const house = await newHouse("sqlite", { handler: { events: false } });
  expect((await house.ask("GET", "/api/events")).status).toBe(404);
  const { body } = await house.ask("GET", "/openapi.json", { secret: null });
  expect(body.paths["/api/events"]).toBeUndefined();
  await house.end();
});
