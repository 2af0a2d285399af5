// The source of the signals: a small HTTP server that stands in for another company's API. A test can make it fail or
// respond late.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Signal } from "./signals.js";

export type Source = {
  readonly url: string;
  readonly asked: () => number;
  signals: Signal[];
  mode: "ok" | "failing";
  /** While it is a promise, responses wait for it to settle. */
  gate: Promise<void> | null;
  close(): Promise<void>;
};

export async function startSource(): Promise<Source> {
  let asked = 0;
  const server = createServer(async (_, response) => {
    asked += 1;
    await source.gate;
    response.writeHead(source.mode === "ok" ? 200 : 503, { "content-type": "application/json" });
    response.end(JSON.stringify({ signals: source.signals }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const source: Source = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/signals`,
    asked: () => asked,
    signals: [
      { id: "lisbon-17", title: "Bakery, shutters half up", city: "Lisbon", score: 71 },
      { id: "porto-4", title: "Bookshop, shelves are in", city: "Porto", score: 55 },
    ],
    mode: "ok",
    gate: null,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return source;
}
