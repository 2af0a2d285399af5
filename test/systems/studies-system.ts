// The market studies of examples/, put together for a test: the markets, the worker service in this process or
// in one of its own, and any number of instances of Holdfast's side on one database.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { createInterface } from "node:readline";
import { getRequestListener } from "@hono/node-server";
import { Holdfast } from "holdfast";
import { createHandler } from "holdfast/http";
import { onTestFinished } from "vitest";
import { startListings } from "../../examples/market-studies/listings.js";
import { prepareTables } from "../../examples/market-studies/results.js";
import { alerts, checks, defineStudies } from "../../examples/market-studies/studies.js";
import { studyWorker } from "../../examples/market-studies/worker.js";
import { openDatabase } from "./app-database.js";
import { EXAMPLES, type Place } from "./places.js";

const CRON_SECRET = "the-cron-s-own-secret";
export const ADMIN_SECRET = "the-admin-s-own-secret";
const WORKER_SECRET = "a-secret-for-the-worker";
const quiet = () => undefined;
const SILENT = { debug: quiet, info: quiet, warn: quiet, error: quiet };

type Fetch = (request: Request) => Response | Promise<Response>;

export async function listen(serve: () => Fetch): Promise<string> {
  const server = createServer(getRequestListener((request) => serve()(request)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Holdfast's side of the system, once or several times on one database. */
export async function instance(place: Place, workerUrl: string, lease = "10m") {
  const db = await openDatabase(place.url);
  let handler: Fetch = () => new Response(null, { status: 503 });
  const url = await listen(() => handler);
  const holdfast = new Holdfast({
    publicUrl: url,
    workers: { studies: { url: workerUrl, secret: WORKER_SECRET, allowPrivateNetwork: true } },
    alerts,
    checks: checks(place.kind === "postgres" ? "holdfast." : ""),
    database: db.handle,
    logger: SILENT,
  });
  const { study } = defineStudies(holdfast, lease);
  handler = createHandler(holdfast, {
    secrets: { trigger: CRON_SECRET, admin: ADMIN_SECRET },
  });
  place.after(async () => {
    await holdfast.stop({ grace: 0 });
    await db.close();
  });
  const call = async (route: string, body: object = {}, secret = CRON_SECRET) => {
    const response = await fetch(url + route, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const tick = async () => (await call("/api/tick", { limit: 5 })).body;
  const ended = (id: string) => holdfast.runs.wait(id, { timeout: "5m" });
  return { db, holdfast, study, call, tick, ended };
}

/** The whole system: listings, the worker service, and one instance. */
export async function system(place: Place, lease?: string) {
  const source = await startListings();
  onTestFinished(() => source.close());
  const db = await openDatabase(place.url);
  const worker = studyWorker({ db: db.db, sourceUrl: source.url, secret: WORKER_SECRET });
  const received: string[] = [];
  const workerUrl = await listen(() => (request) => {
    received.push(String(request.headers.get("holdfast-id")));
    return worker.receive(request);
  });
  const one = await instance(place, workerUrl, lease);
  await one.holdfast.schedules.list();
  await prepareTables(db);
  place.after(async () => {
    await worker.stop({ graceMs: 0 });
    await db.close();
  });
  return { ...one, db, source, worker, workerUrl, received };
}

/** The worker service as a process of its own. */
export async function service(place: Place, listingsUrl: string) {
  const child: ChildProcess = spawn(
    process.execPath,
    ["--import", "tsx", path.join(EXAMPLES, "market-studies/service.ts")],
    {
      cwd: path.dirname(EXAMPLES),
      env: {
        ...process.env,
        DATABASE_URL: place.url,
        LISTINGS_URL: listingsUrl,
        STUDIES_SECRET: WORKER_SECRET,
        PORT: "0",
      },
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  place.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  const port = await new Promise<string>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the worker service ended with ${code}`)));
    if (child.stdout)
      createInterface(child.stdout).on("line", (line) => {
        const [, found] = /on port (\d+)/.exec(line) ?? [];
        if (found) resolve(found);
      });
  });
  return { child, url: `http://127.0.0.1:${port}/` };
}
