// Sends the values of an attacker: names, texts, numbers and times with a meaning somewhere. Each is plain data here,
// or is refused by name; nothing breaks inside, and nothing secret comes out.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHandler } from "../../src/http/handler.js";
import { until } from "../support/until.js";
import { type AskOptions, DATABASES, type House, newHouse, SECRETS } from "./house.js";

const JSON_TYPE = { "content-type": "application/json" };

describe.each(DATABASES)("on %s", (database) => {
  let house: House;
  beforeAll(async () => {
    house = await newHouse(database);
    house.holdfast.job("study", { run: () => undefined });
    await house.holdfast.enqueue("study", "first");
  });
  afterAll(() => house.end());

  const enqueue = (options: AskOptions) => house.ask("POST", "/api/jobs/study/runs", options);
  const stored = async (id: string) => (await house.ask("GET", `/api/runs/${id}`)).body;
  /** The logged internal failures. */
  const failures = () => house.lines.filter((line) => "requestId" in line);

  const NAMES = [
    'x"; drop table job; --',
    "x'; drop table run; --",
    "public.job",
    "a.b",
    "$$",
    "x".repeat(64),
    "Ünï",
    "pg_catalog",
    "%",
    "_",
    "\\",
    "../../x",
    "__proto__",
    "constructor",
    "<img src=x onerror=alert(1)>",
    "\u2028",
    "\u202e",
    '\n{"level":"error"}',
    "\u001b[2J",
  ];

  test("a name of any kind is a name: stored and found as it is, or refused", async () => {
    for (const name of NAMES) {
      const { status, body } = await enqueue({ body: { input: 1, queue: name } });
      expect([201, 400], name).toContain(status);
      if (status === 201) expect((await stored(body.id)).queue).toBe(name);
      const keyed = await enqueue({ body: { input: 1, key: name, tags: [name] } });
      expect([201, 400], name).toContain(keyed.status);
      if (keyed.status !== 201) continue;
      expect(await stored(keyed.body.id)).toMatchObject({ key: name, tags: [name] });
      const found = await house.ask("GET", `/api/runs?tag=${encodeURIComponent(name)}`);
      expect(found.body.runs.map(({ id }: { id: string }) => id)).toEqual([keyed.body.id]);
    }
    const all = await house.ask("GET", "/api/runs?text=first");
    expect(all.body.runs).toMatchObject([{ input: "first" }]);
    expect(failures()).toEqual([]);
  });

  test("a filter of any kind filters, or is refused", async () => {
    const fields = ["status", "job", "schedule", "mode", "tag", "text", "limit", "cursor", "sort"];
    for (const value of [...NAMES, "", "' or 1=1 --", "id desc; drop table run", "1e309"]) {
      for (const field of fields) {
        const where = `/api/runs?${field}=${encodeURIComponent(value)}`;
        const { status, body } = await house.ask("GET", where);
        expect([200, 400], where).toContain(status);
        // No run has such a job or schedule: a filter that let one through would be none.
        if (field === "job" || field === "schedule") expect(body.runs ?? [], where).toEqual([]);
      }
    }
    expect(failures()).toEqual([]);
  });

  test.for([
    ["no bytes at all", "", 201, null],
    ["a member twice", '{"input":1,"input":2}', 201, 2],
    ["a NUL", '{"input":"a\\u0000b"}', 201, "a\u0000b"],
    ["half a character", '{"input":"\\ud800"}', 201, "\ud800"],
    ["a number that is none here", '{"input":NaN}', 400, null],
    ["150,000 members", `{"input":${members(150_000)}}`, 413, null],
    ["a million members", `{"input":${members(1_000_000)}}`, 413, null],
  ] as const)("an input with %s is taken as it is, or refused", async ([, raw, status, input]) => {
    const answer = await enqueue({ raw, headers: JSON_TYPE });
    expect(answer.status).toBe(status);
    if (status === 201) expect((await stored(answer.body.id)).input).toEqual(input);
  });

  test("neither an input nor a schedule can choose where a run is sent", async () => {
    const url = "http://169.254.169.254/latest/meta-data/";
    const asked = await enqueue({ body: { input: { url, worker: url, target: url } } });
    expect(asked.status).toBe(201);
    for (const member of ["worker", "url", "target", "callback"]) {
      expect((await enqueue({ body: { input: 1, [member]: url } })).status).toBe(400);
      const body = { job: "study", cron: "0 2 * * *", [member]: url };
      expect((await house.ask("PUT", "/api/schedules/s", { body })).status).toBe(400);
    }
    expect((await house.ask("POST", "/api/tick", { body: { limit: 100 } })).status).toBe(200);
    expect((await stored(asked.body.id)).status).toBe("completed");
  });

  test.for([
    ["a second field for seconds, ten thousand times", { cron: "* * * * * * ".repeat(10_000) }],
    ["a megabyte of cron", { cron: "*".repeat(1_000_000) }],
    ["a list of a hundred thousand ranges", { cron: `${"1-59/1,".repeat(100_000)}1 * * * *` }],
    ["a hundred kilobytes of steps", { cron: "*/".repeat(50_000) }],
    ["a hundred kilobytes of spaces", { cron: `*${" ".repeat(100_000)}*` }],
    ["a hundred kilobytes of commas", { cron: ",".repeat(100_000) }],
    ["a date that never comes", { cron: "0 0 30 2 *" }],
    ["a zone that is none", { cron: "0 2 * * *", timezone: "Mars/Olympus" }],
    ["a zone of a hundred kilobytes", { cron: "0 2 * * *", timezone: "A/".repeat(50_000) }],
    ["a duration of a hundred kilobytes", { every: "1h".repeat(50_000) }],
    ["no time at all between two", { every: "0s" }],
    [
      "a beginning after the end of time",
      { cron: "0 2 * * *", from: "+275760-09-13T00:00:00.001Z" },
    ],
    [
      "a beginning in the last year of all",
      { cron: "0 2 * * *", from: "+275760-09-13T00:00:00.000Z" },
    ],
  ])("a schedule of %s is refused by the field, and nothing is stored", async ([, rules]) => {
    const { status, body } = await house.ask("PUT", "/api/schedules/odd", {
      body: { job: "study", ...(rules as object) },
    });
    expect([status, body.problems?.length > 0]).toEqual([400, true]);
    expect(body.problems[0].field).toMatch(/cron|every|timezone|from/);
    expect(JSON.stringify(body).length).toBeLessThan(5_000);
    expect((await house.ask("GET", "/api/schedules/odd")).status).toBe(404);
  });

  test("a header of any kind is read in passing", async () => {
    const long = "a=b; ".repeat(20_000);
    for (const headers of [
      { cookie: long },
      { cookie: `holdfast_session=${".".repeat(100_000)}` },
      { traceparent: `00-${"0".repeat(100_000)}` },
      { accept: "*/*,".repeat(20_000) },
      { "x-request-id": "x".repeat(100_000) },
      { "content-type": `application/json;${" ".repeat(100_000)}` },
      { "if-none-match": "*".repeat(100_000) },
      { origin: "h".repeat(100_000) },
    ])
      expect((await house.ask("GET", "/api/runs?limit=1", { headers })).status).toBe(200);
    const bare = {
      secret: null,
      headers: { cookie: long, authorization: `Bearer ${"x ".repeat(50_000)}` },
    };
    expect((await house.ask("GET", "/api/runs", bare)).status).toBe(401);
  });

  test("a note or a reason that quotes a secret is stored and shown without it", async () => {
    await house.holdfast.schedules.upsert("noted", { job: "study", cron: "0 0 1 1 *" });
    await house.holdfast.schedules.upsert("watched", { monitor: true, every: "1h" });
    const note = `see ${SECRETS.admin}, then go on`;
    const shown = "see ***, then go on";
    let held = () => {};
    const lock = house.holdfast.lock("noted", {}, () => new Promise<void>((done) => (held = done)));
    await until("the lock is held", async () => (await house.holdfast.locks.list()).locks[0]);
    const texts: string[] = [];
    for (const [method, where, body] of [
      ["POST", "/api/pause", { note }],
      ["POST", "/api/resume", {}],
      ["POST", "/api/queues/noted/pause", { note }],
      ["POST", "/api/schedules/noted/pause", { note }],
      ["POST", "/api/worker/claim", { instance: "noted", jobs: ["none"], limit: 1 }],
      ["POST", "/api/instances/noted/quiet", { note }],
      ["POST", "/api/locks/noted/release", { note }],
      ["POST", "/api/ping/watched/fail", { reason: `${".".repeat(1_990)}${note}` }],
      ["GET", "/api/queues", undefined],
      ["GET", "/api/locks/history", undefined],
      ["GET", "/api/runs", undefined],
      ["GET", "/api/audit", undefined],
    ] as const) {
      const answer = await house.ask(method, where, body === undefined ? {} : { body });
      expect([where, answer.status]).toEqual([where, 200]);
      texts.push(answer.text);
    }
    held();
    await lock.catch(() => undefined);
    const all = `${texts.join("\n")}${JSON.stringify(house.lines)}`;
    expect(all).not.toContain(SECRETS.admin.slice(0, 8));
    // Of the audit trail: everything, the queue, the schedule, the instance, the lock.
    expect(texts.at(-1)?.split(shown)).toHaveLength(6);
  });

  test("no secret comes out: not in an answer, the metrics, the settings or the log", async () => {
    const canary = "canary-4711";
    const secrets = { admin: `${canary}-admin`, trigger: `${canary}-trigger, ${canary}-next` };
    const handler = createHandler(house.holdfast, { secrets, logger: listening(house.lines) });
    const texts: string[] = [];
    const ask = async (method: string, where: string, secret: string, body?: object) => {
      const response = await handler(
        new Request(`http://h${where}`, {
          method,
          headers: {
            ...JSON_TYPE,
            authorization: `Bearer ${secret}`,
            cookie: `holdfast_session=${canary}`,
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        }),
      );
      texts.push(JSON.stringify([...response.headers]), await response.text());
      return response.status;
    };
    expect(await ask("POST", "/api/tick", `${canary}-wrong`, {})).toBe(401);
    expect(await ask("POST", "/api/tick", `${canary}-next`, { budget: "soon" })).toBe(400);
    expect(await ask("GET", "/api/runs", `${canary}-trigger`)).toBe(403);
    expect(await ask("POST", "/api/session", "", { secret: `${canary}-wrong` })).toBe(401);
    for (const where of [
      "/metrics",
      "/api/settings",
      "/openapi.json",
      "/",
      "/api/me",
      "/api/instances",
    ])
      expect(await ask("GET", where, `${canary}-admin`)).toBe(200);
    expect(texts.filter((text) => text.includes(canary))).toEqual([]);
    expect(JSON.stringify(house.lines)).not.toContain(canary);
  });
});

function members(count: number): string {
  return `{${Array.from({ length: count }, (_, n) => `"k${n}":1`).join(",")}}`;
}

function listening(lines: object[]) {
  const hear = (fields: object) => void lines.push(fields);
  return { debug: hear, info: hear, warn: hear, error: hear };
}

test("a secret that the host wrote as nothing opens nothing", async () => {
  const house = await newHouse("sqlite");
  const handler = createHandler(house.holdfast, { secrets: { read: undefined as never } });
  for (const authorization of ["Bearer undefined", "Bearer null", "Bearer"])
    expect(
      (await handler(new Request("http://h/api/runs", { headers: { authorization } }))).status,
    ).toBe(401);
  expect((await handler(new Request("http://h/api/runs"))).status).toBe(403);
  await house.end();
});
