// The source of listings: a small HTTP server that stands in for the markets of several countries. A country can be
// made slow, failing or blocked.

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

export type Mood = "ok" | "slow" | "failing" | "blocked";

export type Listing = {
  readonly url: string;
  readonly title: string;
  readonly price: number;
  readonly mileage: number;
  readonly year: number;
};

export type ListingsSource = {
  readonly url: string;
  /** "FR TOYOTA_…" for every request, in order. */
  readonly asked: string[];
  /** The cars for sale; without an entry they are generated, the same every time. */
  readonly shelves: Map<string, readonly Listing[]>;
  /** The delay of every response in milliseconds. */
  paceMs: number;
  /** While it is a promise, responses wait for it to settle. */
  gate: Promise<void> | null;
  /** The behaviour for the next requests about a country; then it is healthy again. */
  plan(country: string, ...moods: Mood[]): void;
  close(): Promise<void>;
};

const PAGE = 10;
const SLOW_FACTOR = 10;

export async function startListings(options: { readonly paceMs?: number } = {}) {
  const moods = new Map<string, Mood[]>();
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(String(request.url), "http://source");
    const country = pathname.slice(1);
    const study = searchParams.get("study") ?? "";
    source.asked.push(`${country} ${study}`);
    const mood = moods.get(country)?.shift() ?? "ok";
    await source.gate;
    await pause(mood === "slow" ? source.paceMs * SLOW_FACTOR : source.paceMs);
    const all = source.shelves.get(`${country} ${study}`) ?? madeUp(country, study);
    const listings = searchParams.get("mode") === "fast" ? all.slice(0, PAGE) : all;
    const [status, body] =
      mood === "failing"
        ? [503, { error: "try again" }]
        : mood === "blocked"
          ? [403, { error: "are you a robot?" }]
          : [200, { listings }];
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const source: ListingsSource = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    shelves: new Map(),
    paceMs: options.paceMs ?? 0,
    gate: null,
    plan: (country, ...next) => void moods.set(country, [...(moods.get(country) ?? []), ...next]),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return source;
}

/** The same cars for the same request. Every other study finds some that are much cheaper abroad. */
function madeUp(country: string, study: string): Listing[] {
  const chance = (salt: string) =>
    createHash("sha256").update(`${study} ${salt}`).digest().readUInt16BE(0) / 65_536;
  const usual = 24_000 + Math.round(chance("usual") * 160) * 100;
  return Array.from({ length: 25 }, (_, no) => ({
    url: `https://cars.example/${country.toLowerCase()}/${encodeURIComponent(study)}/${no + 1}`,
    title: `${study.split("_").slice(0, 2).join(" ")}, no. ${no + 1}`,
    price: usual + Math.round((chance(`${country} ${no}`) - 0.5) * 120) * 100,
    mileage: Math.round(chance(`${country} ${no} mileage`) * 60_000),
    year: 2023 + (no % 3),
  }));
}
