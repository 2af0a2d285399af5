// A PostgreSQL server that is restarted under load, and whose sessions are cut: the workers go on by
// themselves, nothing is lost and nothing is doubled.

import net from "node:net";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type PostgresServer, startPostgres } from "../../scripts/postgres.mjs";
import { Holdfast } from "../../src/holdfast.js";
import { StoreUnavailableError } from "../../src/shared/errors.js";
import { until } from "../support/until.js";
import {
  allRuns,
  expectOneStartPerFence,
  newFolder,
  POSTGRES_URL,
  WorkerProcesses,
} from "./worker-processes.js";

const TOTAL = 2_400;
const BATCH = 10;

test("a session that is cut the moment it begins is an error to its caller and nothing more", async () => {
  const server = net.createServer((socket) => {
    socket.on("error", () => undefined);
    // Welcome and farewell in one packet, as it arrives when a server stops while somebody connects.
    socket.once("data", () => socket.end(Buffer.concat([WELCOME, FAREWELL])));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const holdfast = new Holdfast({ database: `postgres://x@127.0.0.1:${port}/x`, logger });
  await expect(holdfast.runs.list()).rejects.toThrow(StoreUnavailableError);
  await holdfast.stop();
  await new Promise((resolve) => server.close(resolve));
});

/** One message of the protocol: its kind, its length, its content. */
function message(kind: string, content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(content.length + 4);
  return Buffer.concat([Buffer.from(kind), length, content]);
}

const WELCOME = Buffer.concat([
  message("R", Buffer.alloc(4)),
  message("K", Buffer.alloc(8, 1)),
  message("Z", Buffer.from("I")),
]);
const FAREWELL = message("E", Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"));

describe.skipIf(POSTGRES_URL === undefined)("with a server of its own", () => {
  let server: PostgresServer;
  let processes: WorkerProcesses;

  beforeAll(async () => {
    server = await startPostgres({ settings: { max_connections: 60 } });
    processes = new WorkerProcesses({ url: server.url }, newFolder());
  });

  afterAll(async () => {
    await processes.end();
    await server.stop();
  });

  const disasters: Record<string, () => Promise<unknown>> = {
    "every session is cut": () => cutSessions(server.url),
    "the server crashes and comes back": () => server.restart("immediate"),
    "every session is cut again": () => cutSessions(server.url),
    "the server crashes again": () => server.restart("immediate"),
    "every session is cut a last time": () => cutSessions(server.url),
    "the server is restarted in good order": () => server.restart("fast"),
  };

  test("workers and callers go on by themselves, nothing is lost and nothing doubled", async () => {
    const orders = { lease: "2s", poll: "200ms", concurrency: 5, attempts: 20 };
    const names = ["first", "second", "third"];
    await Promise.all(names.map((name) => processes.start(name, orders)));
    const observer = processes.observer();
    const study = observer.job<number>("tiny", { lease: "2s", retry: { attempts: 20, delay: 0 } });
    const acknowledged = new Set<string>();
    const enqueueing = (async () => {
      for (let count = 0; count < TOTAL; count += BATCH) {
        const batch = Array.from({ length: BATCH }, () => study.enqueue(5));
        for (const { id } of await Promise.all(batch)) acknowledged.add(id);
      }
    })();
    const share = TOTAL / (Object.keys(disasters).length + 1);
    let happened = 0;
    for (const [what, happen] of Object.entries(disasters)) {
      happened += 1;
      await until(
        `before ${what}, the work goes on`,
        () => processes.starts().length >= happened * share,
        {
          everyMs: 20,
        },
      );
      await happen();
    }
    await enqueueing;
    expect(acknowledged.size).toBe(TOTAL);
    const isOver = async () => {
      const { runs } = await observer.runs.list({ status: "completed", limit: 1_000 });
      return runs.length > 0 && (await allRuns(observer)).every(({ finishedAt }) => finishedAt);
    };
    await until("every run has ended", isOver, { everyMs: 100 });

    const runs = await allRuns(observer);
    expect(new Set(runs.map(({ id }) => id))).toEqual(acknowledged);
    expect(runs.filter(({ status }) => status !== "completed")).toEqual([]);
    expectOneStartPerFence(processes);
    const starts = new Set(processes.starts().map(({ run, fence }) => `${run} ${fence}`));
    expect(runs.filter(({ id, fence }) => !starts.has(`${id} ${fence}`))).toEqual([]);
    expect(processes.heard("store.failed").length).toBeGreaterThan(0);
    const exits = await Promise.all(processes.workers.map((worker) => worker.stops()));
    expect(processes.workers.map(({ errors }) => errors).join("")).toBe("");
    expect(exits).toEqual([0, 0, 0]);
  });
});

async function cutSessions(url: string): Promise<void> {
  const client = new pg.Client(url);
  client.on("error", () => undefined);
  await client.connect();
  await client.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast'",
  );
  await client.end();
}
