// Proves that a start waits for a database that is not there yet, says so, and fails at once where waiting cannot help.

import net from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import type { HoldfastOptions } from "../../src/instance/config.js";
import { StoppedError, StoreUnavailableError } from "../../src/shared/errors.js";
import { SqliteStore } from "../../src/store/sqlite/store.js";
import type { Logger } from "../../src/telemetry/log.js";
import { SeededRandom, seededIds, VirtualClock } from "../../src/testing/virtual-clock.js";
import { borrowSchema } from "../support/borrowed-schema.js";
import { POSTGRES_URL } from "./places.js";
import { Door } from "./world.js";

const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** An instance in virtual time whose database can be opened after so many tries that fail with this. */
function absent(failure: StoreUnavailableError, options: HoldfastOptions = {}) {
  const clock = new VirtualClock();
  const random = new SeededRandom(1);
  const scene = { clock, tries: 0, awaited: [] as number[], isThere: false };
  const store = new SqliteStore({
    source: { file: ":memory:" },
    clock,
    random,
    synchronous: "FULL",
    migrate: "auto",
    mayCreate: true,
    now: () => clock.wallMs(),
  });
  const open = store.open.bind(store);
  store.open = async () => {
    scene.tries += 1;
    if (!scene.isThere) throw failure;
    await open();
  };
  const holdfast = new Holdfast(
    { database: "sqlite::memory:", logger: SILENT, ...options },
    { ports: { clock, random, ids: seededIds(clock, random) }, store: () => store },
  );
  holdfast.on("store.awaited", ({ waitedMs }) => scene.awaited.push(waitedMs));
  return { ...scene, scene, holdfast };
}

const AWAY = new StoreUnavailableError({ tried: "connect to PostgreSQL" });

describe("a start without a database", () => {
  test("waits for 30 s, logs that every five seconds, and then fails with the cause", async () => {
    const { holdfast, clock, scene } = absent(AWAY);
    const startedMs = clock.monotonicMs();
    await expect(clock.until(holdfast.start())).rejects.toBe(AWAY);
    expect(clock.monotonicMs() - startedMs).toBe(30_000);
    expect(scene.awaited[0]).toBe(0);
    expect(scene.awaited).toHaveLength(6);
    await clock.until(holdfast.stop());
  });

  test("starts once the database is there", async () => {
    const { holdfast, clock, scene } = absent(AWAY);
    const started = holdfast.start();
    await clock.advance(20_000);
    scene.isThere = true;
    await clock.until(started, { withinMs: 2_000 });
    await clock.until(holdfast.stop());
  });

  test("waits for as long as startTimeout says, and 0 fails at once", async () => {
    for (const startTimeout of ["0s", "2s"] as const) {
      const { holdfast, clock, scene } = absent(AWAY, { startTimeout });
      const startedMs = clock.monotonicMs();
      await expect(clock.until(holdfast.start())).rejects.toBe(AWAY);
      expect(clock.monotonicMs() - startedMs).toBe(startTimeout === "0s" ? 0 : 2_000);
      expect(scene.awaited).toHaveLength(startTimeout === "0s" ? 0 : 1);
      await clock.until(holdfast.stop());
    }
  });

  test("fails at once where waiting cannot help", async () => {
    const refused = new StoreUnavailableError({ tried: "connect", isTemporary: false });
    const { holdfast, clock, scene } = absent(refused);
    await expect(holdfast.start()).rejects.toBe(refused);
    expect(scene).toMatchObject({ tries: 1, awaited: [] });
    await clock.until(holdfast.stop());
  });

  test("a stop ends the wait", async () => {
    const { holdfast, clock } = absent(AWAY);
    const started = holdfast.start().catch((error: unknown) => error);
    await clock.advance(1_000);
    await clock.until(holdfast.stop(), { withinMs: 0 });
    expect(await started).toBeInstanceOf(StoppedError);
  });
});

/** The message of a server that refuses a client. */
function refusal(code: string, text: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

/** A way to the test server that is shut at first, on a port of its own. */
class Gate {
  readonly #server = net.createServer((socket) => this.#take(socket));
  readonly #sockets = new Set<net.Socket>();
  /** The refusals for the next clients, in order. */
  readonly refusals: Buffer[] = [];
  port = 0;

  async reserve(): Promise<void> {
    await this.open();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, "127.0.0.1", resolve));
    this.port = (this.#server.address() as net.AddressInfo).port;
  }

  get url(): string {
    const url = new URL(POSTGRES_URL as string);
    url.host = `127.0.0.1:${this.port}`;
    return url.href;
  }

  end(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #take(socket: net.Socket): void {
    this.#keep(socket);
    const refused = this.refusals.shift();
    if (refused) {
      socket.once("data", () => socket.end(refused));
      return;
    }
    const { hostname, port } = new URL(POSTGRES_URL as string);
    const behind = net.connect(Number(port || 5432), hostname);
    this.#keep(behind);
    socket.pipe(behind).pipe(socket);
  }

  #keep(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
  }
}

describe.skipIf(POSTGRES_URL === undefined)("a start before PostgreSQL", () => {
  async function behindGate(options: HoldfastOptions = {}) {
    const gate = new Gate();
    await gate.reserve();
    const schema = borrowSchema("engine");
    const holdfast = new Holdfast({
      database: gate.url,
      schema: schema.name,
      logger: SILENT,
      ...options,
    });
    onTestFinished(async () => {
      await holdfast.stop();
      gate.end();
      await schema.giveBack();
    });
    return { gate, holdfast };
  }

  test("waits while no server listens and while the server starts up", async () => {
    const { gate, holdfast } = await behindGate();
    const codes: unknown[] = [];
    const first = new Door();
    holdfast.on("store.awaited", ({ error }) => {
      codes.push(error.message);
      first.open();
    });
    const started = holdfast.start();
    await first.opened;
    gate.refusals.push(refusal("57P03", "the database system is starting up"));
    await gate.open();
    await started;
    expect(codes[0]).toMatch(/ECONNREFUSED/);
    expect(gate.refusals).toEqual([]);
    const study = holdfast.job("study", { run: () => "done" });
    expect(await holdfast.runs.wait((await study.enqueue({})).id)).toMatchObject({
      status: "completed",
    });
  });

  test("fails at once for a wrong password and for a database that the server does not know", async () => {
    const { gate, holdfast } = await behindGate();
    let waits = 0;
    holdfast.on("store.awaited", () => {
      waits += 1;
    });
    gate.refusals.push(refusal("28P01", 'password authentication failed for user "app"'));
    await gate.open();
    await expect(holdfast.start()).rejects.toThrow(/password authentication failed/);
    const url = new URL(POSTGRES_URL as string);
    url.pathname = "/holdfast_there_is_no_such_database";
    const elsewhere = new Holdfast({ database: url.href, logger: SILENT });
    elsewhere.on("store.awaited", () => {
      waits += 1;
    });
    await expect(elsewhere.start()).rejects.toThrow(/does not exist/);
    await elsewhere.stop();
    expect(waits).toBe(0);
  });
});
