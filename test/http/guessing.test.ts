// Guessing a secret over HTTP is slow, and leaves its traces: in the log, in the metrics and in the audit trail.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createHandler } from "../../src/http/handler.js";
import { ConfigurationError } from "../../src/index.js";
import { type AskOptions, DATABASES, type House, newHouse, SECRETS } from "./house.js";

const GUESSER = "203.0.113.9";
const OTHER = "198.51.100.7";

describe.each(DATABASES)("on %s", (database) => {
  let house: House;
  beforeEach(async () => {
    // Waits are counted by this clock, which the test moves.
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    house = await newHouse(database);
  });
  afterEach(async () => {
    vi.useRealTimers();
    await house.end();
  });

  const runs = (options: AskOptions) => house.ask("GET", "/api/runs", options);
  const guess = async (count: number, options: AskOptions = {}) => {
    const statuses: number[] = [];
    for (let n = 0; n < count; n += 1)
      statuses.push((await runs({ secret: `wrong-${n}`, address: GUESSER, ...options })).status);
    return statuses;
  };

  test("after ten wrong secrets no secret of that peer is judged for a while, and each further one doubles the wait", async () => {
    expect(await guess(12)).toEqual([...Array(10).fill(401), 429, 429]);
    for (const wait of [1, 2, 4, 8, 16, 32, 60, 60]) {
      const held = await runs({ secret: SECRETS.read, address: GUESSER });
      expect([held.status, held.body.error]).toEqual([429, "too_many_tries"]);
      expect(held.headers.get("retry-after")).toBe(String(wait));
      vi.setSystemTime(Date.now() + wait * 1_000);
      expect(await guess(1)).toEqual([429]);
    }
    vi.setSystemTime(Date.now() + 60_000);
    expect((await runs({ secret: SECRETS.read, address: GUESSER })).status).toBe(200);
  });

  test.for(["a configured secret", "a named key"])(
    "guesses that come at once do not hide %s among them",
    async (kind) => {
      const { secret: key } = await house.holdfast.keys.create("reader", { scopes: ["read"] });
      const isKey = kind === "a named key";
      const right = isKey ? key : SECRETS.read;
      const wrong = (n: number) => (isKey ? `hfk1_${String(n).padStart(64, "0")}` : `wrong-${n}`);
      const secrets = [...Array.from({ length: 30 }, (_, n) => wrong(n)), right];
      const calls = secrets.map((secret) => runs({ secret, address: GUESSER }));
      const statuses = (await Promise.all(calls)).map(({ status }) => status);
      expect(statuses.at(-1)).toBe(429);
      expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    },
  );

  test("other peers, sessions and callers without a secret are not held up", async () => {
    const signIn = (address: string) =>
      house.ask("POST", "/api/session", { secret: null, address, body: { secret: SECRETS.read } });
    const cookie = String((await signIn(GUESSER)).headers.get("set-cookie")).split(";")[0] ?? "";
    await guess(11);
    expect((await runs({ secret: SECRETS.read, address: OTHER })).status).toBe(200);
    expect((await signIn(OTHER)).status).toBe(200);
    expect((await runs({ secret: null, address: GUESSER, headers: { cookie } })).status).toBe(200);
    expect((await runs({ secret: null, address: GUESSER })).status).toBe(401);
    expect((await house.ask("GET", "/healthz", { secret: null, address: GUESSER })).status).toBe(
      200,
    );
  });

  test("behind a trusted proxy one guesser holds up itself and not the others, and the log and the audit trail name it", async () => {
    await house.end();
    house = await newHouse(database, { handler: { trustedProxies: ["10.0.0.0/24"] } });
    const by = (client: string, address = "10.0.0.3") => ({
      address,
      headers: { "x-forwarded-for": client },
    });
    await guess(11, by(GUESSER));
    // By another proxy, and whatever the guesser wrote in the header itself.
    const forged = by(`${OTHER}, ${GUESSER}`, "10.0.0.4");
    expect((await runs({ secret: SECRETS.read, ...forged })).status).toBe(429);
    expect((await runs({ secret: SECRETS.read, ...by(OTHER) })).status).toBe(200);
    const [entry] = (await house.holdfast.audit.list({ limit: 1 })).entries;
    expect(entry).toMatchObject({ noun: "access", address: GUESSER });
    const [line] = (house.lines as { event?: string }[]).filter(
      ({ event }) => event === "access.refused",
    );
    expect(line).toMatchObject({ address: GUESSER });
  });

  test("a peer that is no trusted proxy cannot escape the wait by names in its headers", async () => {
    const statuses: number[] = [];
    for (let n = 0; n < 20; n += 1) {
      const headers = { "x-forwarded-for": `203.0.113.${n}`, "x-real-ip": `203.0.113.${n}` };
      statuses.push((await runs({ secret: `wrong-${n}`, address: "10.0.0.9", headers })).status);
    }
    expect(statuses).toEqual([...Array(10).fill(401), ...Array(10).fill(429)]);
  });

  test("a peer that names others in X-Forwarded-For holds up none of them", async () => {
    const [worker, proxy] = ["10.0.0.5", "10.0.0.3"];
    await guess(20, { address: "10.0.0.9", headers: { "x-forwarded-for": worker } });
    await guess(20, { address: "10.0.0.9", headers: { "x-forwarded-for": OTHER } });
    expect((await runs({ secret: SECRETS.read, address: worker })).status).toBe(200);
    const headers = { "x-forwarded-for": OTHER };
    expect((await runs({ secret: SECRETS.read, address: proxy, headers })).status).toBe(200);
  });

  test("every way to present a secret counts: the header, the page's sign-in, and the question who one is", async () => {
    const wrong = { secret: "wrong", address: GUESSER };
    const ways: (() => Promise<{ readonly status: number }>)[] = [
      () => runs(wrong),
      () => house.ask("GET", "/api/me", wrong),
      () =>
        house.ask("POST", "/api/session", {
          secret: null,
          address: GUESSER,
          body: { secret: "wrong" },
        }),
    ];
    for (let n = 0; n < 12; n += 1) await ways[n % ways.length]?.();
    for (const way of ways) expect((await way()).status).toBe(429);
  });

  test("sign-ins and refusals are logged, counted and audited, without the secret", async () => {
    const headers = { "x-request-id": "r-1" };
    const body = { secret: SECRETS.read };
    await house.ask("POST", "/api/session", { secret: null, address: OTHER, body, headers });
    await guess(11, { headers });
    await guess(100, { headers });
    const lines = house.lines as { readonly event?: string }[];
    const logged = lines.filter(({ event = "" }) => event.startsWith("access."));
    expect(logged).toMatchObject([
      {
        event: "access.signed_in",
        address: OTHER,
        who: "page",
        scopes: ["read"],
        requestId: "r-1",
      },
      ...Array.from({ length: 10 }, () => ({
        event: "access.refused",
        address: GUESSER,
        what: "secret",
        waitS: 0,
      })),
      { event: "access.refused", address: GUESSER, waitS: 1, requestId: "r-1" },
    ]);
    const { text } = await house.ask("GET", "/metrics");
    expect(text).toContain('holdfast_access_total{result="signed_in"} 1');
    expect(text).toContain('holdfast_access_total{result="refused"} 11');
    const { entries } = await house.holdfast.audit.list({ limit: 100 });
    expect(entries.map(({ verb, noun }) => `${verb} ${noun}`)).toEqual([
      ...Array(11).fill("refuse access"),
      "begin session",
    ]);
    expect(entries[0]).toMatchObject({
      via: "http",
      address: GUESSER,
      requestId: "r-1",
      change: "wrong secret; the next one is judged after 1 s",
    });
    const told = JSON.stringify([house.lines, entries]);
    for (const secret of [SECRETS.read, "wrong-1"]) expect(told).not.toContain(secret);
  });

  test("a flood from many peers writes a bounded number of entries a minute", async () => {
    for (let n = 0; n < 100; n += 1) await runs({ secret: "wrong", address: `198.18.0.${n}` });
    const { entries } = await house.holdfast.audit.list({ limit: 1_000, noun: "access" });
    expect(entries).toHaveLength(60);
  });
});

test.for(["1234", "fifteen-letters", "a-secret-of-letters, short"])(
  "a secret that could be guessed (%j) refuses to start and says how to make one",
  async (secret) => {
    const house = await newHouse("sqlite");
    const start = () => createHandler(house.holdfast, { secrets: { admin: secret } });
    expect(start).toThrow(ConfigurationError);
    expect(start).toThrow(/secrets\.admin: .*at least 16 characters.*openssl rand -hex 32/);
    expect(() =>
      createHandler(house.holdfast, { secrets: { admin: "sixteen-letters-" } }),
    ).not.toThrow();
    await house.end();
  },
);
