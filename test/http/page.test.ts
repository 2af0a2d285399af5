// The page and what it asks the API for: its files wherever it is mounted, who may do what, the timeline,
// previews of definitions that are not stored.

import { gunzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { createHandler as createBuiltHandler } from "../../dist/http/index.js";
import { PermanentError } from "../../src/index.js";
import { DATABASES, type House, newHouse, SECRETS } from "./house.js";

const LOCAL = { host: "127.0.0.1:4780" };

let house: House;
afterEach(() => house.end());

describe("the files of the page", () => {
  test.for(["", "/ops/holdfast"])(
    "are served under the base path %j, by a strict policy",
    async (basePath) => {
      house = await newHouse("sqlite");
      const handler = createBuiltHandler(house.holdfast as never, { basePath, secrets: SECRETS });
      const get = (where: string, headers: Record<string, string> = {}) =>
        handler(new Request(`http://127.0.0.1:4780${basePath}${where}`, { headers }));
      for (const where of ["/", "/runs", "/schedules/any%20name", "/settings"]) {
        const page = await get(where);
        expect(page.status, where).toBe(200);
        expect(page.headers.get("cache-control")).toBe("no-cache");
        expect(page.headers.get("content-security-policy")).toContain(
          "default-src 'none'; script-src 'self';",
        );
        expect(await page.text()).toContain(`name="holdfast-base" content="${basePath}"`);
      }
      const html = await (await get("/")).text();
      expect(html).not.toMatch(/<script(?![^>]*src=)|<style|style=|javascript:/);
      const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file = ""]) => file);
      expect(files.length).toBeGreaterThan(2);
      for (const file of files) {
        expect(file.startsWith(`${basePath}/assets/`), file).toBe(true);
        const where = file.slice(basePath.length);
        const packed = await get(where, { "accept-encoding": "gzip, br" });
        expect(packed.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
        expect(packed.headers.get("content-encoding")).toBe("gzip");
        const plain = await get(where);
        expect(plain.headers.get("content-encoding")).toBe(null);
        expect(gunzipSync(await packed.arrayBuffer()).toString()).toBe(await plain.text());
      }
      expect((await get("/assets/none.js")).status).toBe(404);
      expect((await get("/assets/__proto__")).status).toBe(404);
    },
  );

  test("a wrong address is a page with the status 404 for a browser, and JSON for everything else", async () => {
    house = await newHouse("sqlite");
    const basePath = "/ops";
    const handler = createBuiltHandler(house.holdfast as never, { basePath, secrets: SECRETS });
    const get = (where: string, accept: string | null, method = "GET") =>
      handler(
        new Request(`http://127.0.0.1:4780${basePath}${where}`, {
          method,
          headers: accept === null ? {} : { accept },
        }),
      );
    const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    const page = await get("/no/such/page", browser);
    expect(page.status).toBe(404);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(await page.text()).toContain(`name="holdfast-base" content="${basePath}"`);
    for (const [where, accept, method] of [
      ["/no/such/page", null, "GET"],
      ["/no/such/page", "*/*", "GET"],
      ["/no/such/page", browser, "POST"],
      ["/api/none", browser, "GET"],
      ["/assets/none.js", browser, "GET"],
    ] as const) {
      const answer = await get(where, accept, method);
      expect(answer.status, where).toBe(404);
      expect(answer.headers.get("content-type"), where).toBe("application/problem+json");
    }
  });

  test("the first load is at most 130 kB of compressed script", async () => {
    house = await newHouse("sqlite");
    const handler = createBuiltHandler(house.holdfast as never, { secrets: SECRETS });
    const html = await (await handler(new Request("http://127.0.0.1:4780/"))).text();
    const scripts = [...html.matchAll(/"(\/assets\/[^"]+\.js)"/g)].map(([, file = ""]) => file);
    expect(scripts.length).toBeGreaterThan(0);
    let bytes = 0;
    for (const file of scripts) {
      const headers = { "accept-encoding": "gzip" };
      const answer = await handler(new Request(`http://127.0.0.1:4780${file}`, { headers }));
      bytes += (await answer.arrayBuffer()).byteLength;
    }
    expect(bytes).toBeLessThan(130_000);
    expect(bytes).toBeGreaterThan(10_000);
  });
});

describe("the scopes of the caller", () => {
  const me = (headers: Record<string, string> = {}) =>
    house.ask("GET", "/api/me", { secret: null, headers });

  test("come from a secret, a session, or nothing", async () => {
    house = await newHouse("sqlite");
    expect((await me()).body).toMatchObject({
      scopes: [],
      by: null,
      login: "secret",
      hasEvents: true,
    });
    const authorization = `Bearer ${SECRETS.read}`;
    expect((await me({ authorization })).body).toMatchObject({ scopes: ["read"], by: "http" });
    const session = await house.ask("POST", "/api/session", {
      secret: null,
      body: { secret: SECRETS.admin },
    });
    const cookie = String(session.headers.get("set-cookie")).split(";")[0] ?? "";
    const all = ["trigger", "enqueue", "worker", "read", "admin"];
    expect((await me({ cookie })).body).toMatchObject({ scopes: all, by: "page" });
    expect((await me({ authorization: "Bearer nonsense" })).body.scopes).toEqual([]);
  });

  test("are all scopes that are open on this machine, and none for a remote peer", async () => {
    house = await newHouse("sqlite", {
      handler: { secrets: { admin: SECRETS.admin }, openOnLoopback: true },
    });
    expect((await me(LOCAL)).body.scopes).toEqual([]);
    await house.end();
    house = await newHouse("sqlite", { handler: { secrets: {}, openOnLoopback: true } });
    expect((await me(LOCAL)).body).toMatchObject({ login: "none" });
    expect((await me(LOCAL)).body.scopes).toContain("admin");
    expect((await me({ ...LOCAL, "x-forwarded-for": "10.0.0.1" })).body.scopes).toEqual([]);
    expect((await me({ ...LOCAL, origin: "https://evil.example" })).body.scopes).toEqual([]);
  });

  test("come from the host's own sign-in", async () => {
    const authorize = (request: Request) =>
      request.headers.get("x-user") === "ada" ? { scopes: ["read" as const], by: "ada" } : null;
    house = await newHouse("sqlite", { handler: { authorize } });
    expect((await me()).body).toMatchObject({ scopes: [], login: "elsewhere" });
    expect((await me({ "x-user": "ada" })).body).toMatchObject({ scopes: ["read"], by: "ada" });
  });
});

describe.each(DATABASES)("the requests of the page on %s", (database) => {
  const HOUR_MS = 3_600_000;
  const at = (ms: number) => new Date(Date.now() + ms).toISOString();

  test("the timeline has ledger, states of runs and plans side by side", async () => {
    house = await newHouse(database);
    const job = house.holdfast.job("study", { run: async () => null });
    await house.holdfast.schedules.upsert("often", { job, every: "1s" });
    await house.holdfast.schedules.upsert("rare", { job, cron: "0 0 1 1 *" });
    await house.holdfast.schedules.upsert("still", { job, cron: "* * * * *" });
    await house.holdfast.schedules.pause("still", "a reason");
    await house.holdfast.start();
    const query = () => `from=${at(-HOUR_MS)}&to=${at(HOUR_MS)}&cell=1h`;
    const rows = async (rest = "") =>
      (await house.ask("GET", `/api/timeline?${query()}${rest}`)).body.schedules;
    await expect
      .poll(async () => (await rows())[0].ticks.map((cell: { status: string }) => cell.status))
      .toContain("completed");
    const [often, rare, still] = await rows();
    expect(often).toMatchObject({ name: "often", job: "study", status: "active" });
    expect(often.ticks[0]).toMatchObject({
      outcome: "fired",
      reason: "on_time",
      runId: expect.any(String),
    });
    const planned = often.planned.reduce(
      (sum: number, { count }: { count: number }) => sum + count,
      0,
    );
    expect(planned).toBeGreaterThan(3_000);
    expect(often.planned.length).toBeLessThan(4);
    expect(rare).toMatchObject({ ticks: [], planned: [] });
    expect(still).toMatchObject({ status: "paused", planned: [], pausedAt: expect.any(String) });
    expect(await rows("&schedule=rare")).toHaveLength(1);
    const { body: first } = await house.ask("GET", `/api/timeline?${query()}&limit=1`);
    expect(first).toMatchObject({ nextCursor: "often" });
    expect((await rows(`&limit=1&cursor=${first.nextCursor}`))[0].name).toBe("rare");
    const refused = async (rest: string) =>
      (await house.ask("GET", `/api/timeline?${rest}`)).body.problems[0].field;
    expect(await refused(`from=${at(0)}&to=${at(-1)}`)).toBe("schedules.timeline().to");
    expect(await refused(`from=${at(-HOUR_MS)}&to=${at(0)}&cell=1s`)).toBe(
      "schedules.timeline().cell",
    );
    expect(await refused("from=yesterday&to=now")).toBe("schedules.timeline().from");
  });

  test("a definition is previewed without being stored", async () => {
    house = await newHouse(database);
    const preview = (body: object) =>
      house.ask("POST", "/api/schedules/preview", { body, secret: SECRETS.read });
    const { body } = await preview({ cron: "30 2 * * *", timezone: "Europe/Paris", count: 400 });
    expect(body.description).toBe("at 02:30 every day, Europe/Paris");
    expect(body.ticks).toHaveLength(400);
    expect(body.notes.length).toBeGreaterThan(0);
    expect(body.warnings.length).toBeGreaterThan(0);
    expect((await preview({ every: "10m..15m" })).body.ticks).toHaveLength(1);
    expect(await preview({ cron: "61 * * * *" })).toMatchObject({
      status: 400,
      body: { error: "configuration_invalid" },
    });
    expect((await house.holdfast.schedules.list()).schedules).toEqual([]);
  });

  test("runs are listed by the time at which they were stored", async () => {
    house = await newHouse(database);
    house.holdfast.job("study", {});
    await house.holdfast.enqueue("study", 1);
    const count = async (query: string) =>
      (await house.ask("GET", `/api/runs?${query}`)).body.runs.length;
    expect(await count(`from=${at(-HOUR_MS)}&to=${at(HOUR_MS)}`)).toBe(1);
    expect(await count(`from=${at(HOUR_MS)}`)).toBe(0);
    expect(await count(`to=${at(-HOUR_MS)}`)).toBe(0);
    expect(await count(`to=${at(HOUR_MS)}&status=pending`)).toBe(1);
  });

  test("a job has the schema of its input, if its library can export it", async () => {
    house = await newHouse(database);
    house.holdfast.job("plain", { run: async () => null });
    house.holdfast.job("typed", { input: z.object({ market: z.string() }), run: async () => null });
    await house.holdfast.tick({ limit: 0 });
    const { body } = await house.ask("GET", "/api/jobs");
    const schemas = new Map(
      body.jobs.map(({ name, inputSchema }: { name: string; inputSchema: unknown }) => [
        name,
        inputSchema,
      ]),
    );
    expect(schemas.get("plain")).toBe(null);
    expect(schemas.get("typed")).toMatchObject({
      type: "object",
      properties: { market: { type: "string" } },
      required: ["market"],
    });
  });

  test("settings name the database without its secrets", async () => {
    house = await newHouse(database, { options: { app: "shop", poll: "2s" } });
    const { body, text } = await house.ask("GET", "/api/settings", { secret: SECRETS.read });
    expect(body).toMatchObject({ instance: house.holdfast.instanceId, app: "shop", poll: "2s" });
    expect(text).not.toMatch(/:[^/@:]+@/);
  });

  test("settings show whether the instance was started with its scheduler and its worker", async () => {
    house = await newHouse(database);
    const settings = async () => (await house.ask("GET", "/api/settings")).body;
    expect(await settings()).toMatchObject({ scheduler: false, worker: false });
    await house.holdfast.start({ scheduler: false, worker: false });
    expect(await settings()).toMatchObject({ scheduler: false, worker: false });
    const other = await newHouse(database);
    await other.holdfast.start({ worker: { concurrency: 2 } });
    const { body } = await other.ask("GET", "/api/settings");
    expect(body).toMatchObject({ scheduler: true, worker: true });
    await other.end();
  });

  test("the ledger says how the run of each tick stands", async () => {
    house = await newHouse(database);
    const { holdfast } = house;
    const ledger = async () => (await house.ask("GET", "/api/ticks")).body.ticks;
    const seen: unknown[] = [];
    holdfast.job("study", { run: async () => void seen.push(await ledger()) });
    holdfast.job("broken", {
      run() {
        throw new PermanentError("no such market");
      },
    });
    // The first tick of a drawn interval is the moment of its making.
    await holdfast.schedules.upsert("good", { job: "study", every: "1h..2h" });
    await holdfast.tick({ limit: 0 });
    expect(await ledger()).toMatchObject([{ outcome: "fired", runStatus: "pending" }]);
    await holdfast.tick({ limit: 1 });
    expect(seen).toMatchObject([[{ outcome: "fired", runStatus: "running" }]]);
    expect(await ledger()).toMatchObject([{ outcome: "fired", runStatus: "completed" }]);
    await holdfast.schedules.upsert("bad", { job: "broken", every: "1h..2h" });
    await holdfast.tick({ limit: 1 });
    const { body } = await house.ask("GET", "/api/ticks?schedule=bad");
    expect(body.ticks).toMatchObject([{ outcome: "fired", runStatus: "failed" }]);
  });
});
