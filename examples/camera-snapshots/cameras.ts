// The cameras: devices of another vendor, simulated by a small HTTP server. Each serves one caller at a time and
// returns 409 to a second one; it returns 412 to a caller with an older fence than the newest one it has seen.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Kysely, sql } from "kysely";
import { type Colour, png } from "./png.js";

export type Cameras = {
  readonly url: string;
  /** The number of pictures of each camera. */
  readonly taken: Map<string, number>;
  /** Callers that arrived while a camera was in use, and callers with an old fence. */
  readonly refused: { inUse: number; outdated: number };
  /** These cameras respond only after the promise settles. */
  readonly gates: Map<string, Promise<void>>;
  close(): Promise<void>;
};

const SIZE = { width: 96, height: 64 };

export async function startCameras({ port = 0, host = "127.0.0.1", takesMs = 0 } = {}) {
  const lookedAt = new Set<string>();
  const newestFences = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const camera = String(request.url).split("/")[1] ?? "";
    const fence = Number(request.headers.fence ?? 0);
    const newest = newestFences.get(camera) ?? 0;
    const refuse = (status: number, why: string) => response.writeHead(status).end(why);
    if (fence < newest) {
      cameras.refused.outdated += 1;
      return refuse(412, `fence ${fence} is older than ${newest}`);
    }
    if (lookedAt.has(camera)) {
      cameras.refused.inUse += 1;
      return refuse(409, `${camera} is in use`);
    }
    newestFences.set(camera, fence);
    lookedAt.add(camera);
    // A caller that disconnects frees the camera.
    response.once("close", () => lookedAt.delete(camera));
    await Promise.all([pause(takesMs), cameras.gates.get(camera)]);
    if (response.destroyed) return;
    cameras.taken.set(camera, (cameras.taken.get(camera) ?? 0) + 1);
    response.writeHead(200, { "content-type": "image/png" });
    response.end(view(camera, new Date()));
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const cameras: Cameras = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken: new Map(),
    refused: { inUse: 0, outdated: 0 },
    gates: new Map(),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return cameras;
}

/** Fills the table of the application with them. */
export async function installCameras(db: Kysely<unknown>, count: number, every: string) {
  for (let at = 1; at <= count; at += 1)
    await sql`insert into cameras (id, every)
      values (${`cam-${String(at).padStart(2, "0")}`}, ${every}) on conflict do nothing`.execute(
      db,
    );
}

/** A sky in the camera's own colour, and a person who crosses the yard once a minute. */
function view(camera: string, at: Date): Buffer {
  const shade = [...camera].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 200, 7);
  const walkerX = (at.getSeconds() / 60) * SIZE.width;
  return png(SIZE, ({ x, y }): Colour => {
    if (Math.abs(x - walkerX) < 3 && y > 30 && y < 56) return [20, 20, 20];
    return y < 44 ? [shade, 120 + y, 220 - y] : [90, 110, 70];
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const port = Number(process.env.PORT || 4795);
  await startCameras({ port, host: process.env.HOST || "127.0.0.1", takesMs: 300 });
  console.log(`cameras at http://127.0.0.1:${port}/cam-01`);
}
