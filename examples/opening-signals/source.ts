// Where the signals come from: a small HTTP server that stands in for somebody else's API. It can be told
// to fail or to take its time.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Signal } from "./signals.js";

export type Source = {
  readonly url: string;
  readonly asked: () => number;
  signals: Signal[];
  mode: "ok" | "failing";
  /** While it is a promise, nobody is answered before it is settled. */
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
