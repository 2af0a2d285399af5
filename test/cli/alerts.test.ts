// Alerts through the program: looked at, muted, acknowledged, resolved, tried out.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { configText, openTerminal, type Terminal } from "./terminal.js";

const ID = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";
const JOBS = `
holdfast.job("greet", { run: () => "hello" });
holdfast.job("break", { retry: { attempts: 1 }, run: () => { throw new Error("no"); } });`;
let terminal: Terminal;
let server: Server;
let bodies: string[] = [];

beforeAll(async () => {
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    bodies.push(body);
    response.writeHead(request.url === "/slack" ? 200 : 500).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  terminal = openTerminal();
  terminal.write({ "holdfast.config.mjs": configText(JOBS, alerts("/slack")) });
  terminal.write({ "bad.config.mjs": configText(JOBS, alerts("/broken")) });
});
afterAll(async () => {
  server.close();
  await terminal.close();
});

function alerts(path: string): string {
  const { port } = server.address() as AddressInfo;
  const to = [{ slack: `http://127.0.0.1:${port}${path}`, allowPrivateNetwork: true }];
  return `{ database: "sqlite:app.db", alerts: ${JSON.stringify({ failureRate: { atLeast: 1 }, to })} }`;
}

async function json(...args: string[]) {
  const ended = await terminal.holdfast([...args, "--json"]);
  return { ...ended, document: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
}

test("alerts of a pass are listed, shown, muted, acknowledged and resolved, as text and as JSON", async () => {
  await terminal.holdfast(["migrate"]);
  expect((await terminal.holdfast(["alerts", "list"])).stdout).toBe("No alerts.\n");
  const made = await terminal.holdfast([
    ...["schedules", "create", "nightly", "--job", "greet", "--cron", "* * * * *"],
    ...["--alerts", '{"stale":"30m","consecutiveFailures":{"after":1}}'],
  ]);
  expect(made).toMatchObject({ code: 0 });
  const shown = await terminal.holdfast(["schedules", "show", "nightly"]);
  expect(shown.stdout).toContain('{"stale":"30m","consecutiveFailures":{"after":1}}');
  await terminal.holdfast(["enqueue", "break", "null"]);
  await terminal.holdfast(["tick"]);
  const list = await terminal.holdfast(["alerts", "list"]);
  expect(list).toMatchObject({ code: 0 });
  expect(list.stdout).toMatch(/critical.*failureRate.*job "break"/);
  const { document } = await json("alerts", "list", "--kind", "failureRate");
  const [{ id }] = document.alerts;
  expect(document).toMatchObject({ alerts: [{ subject: { type: "job", name: "break" } }] });
  const one = await terminal.holdfast(["alerts", "show", id]);
  expect(one.stdout).toMatch(/message +1 of 1 run failed/);
  expect(one.stdout).toMatch(/slack +opened +sent/);
  expect((await json("alerts", "show", id)).document.deliveries).toHaveLength(1);
  expect(bodies.some((body) => body.includes("failureRate"))).toBe(true);
  expect((await json("alerts", "show", id.slice(-6))).document.id).toBe(id);
  const muted = await terminal.holdfast(["alerts", "mute", id.slice(-8), "--for", "2h"]);
  expect(muted.stdout).toMatch(/^Muted until 20/);
  const seen = await terminal.holdfast(["alerts", "acknowledge", id.slice(-8), "--by", "anna"]);
  expect(seen.stdout).toBe("Acknowledged by anna.\n");
  const over = await json("alerts", "resolve", id.slice(-8), "--by", "ben");
  expect(over.document).toMatchObject({ resolvedBy: "ben", acknowledgedBy: "anna" });
  const all = await terminal.holdfast(["alerts", "list", "--state", "all"]);
  expect(all.stdout).toContain("resolved");
});

test("a schedule's own rules are changed and taken back by update", async () => {
  const update = (...args: string[]) => json("schedules", "update", "nightly", ...args);
  const changed = await update("--alerts", '{"silent":"1h"}');
  expect(changed.document.schedule.alerts).toEqual({ silent: "1h" });
  expect((await update("--grace", "1m")).document.schedule.alerts).toEqual({ silent: "1h" });
  expect((await update("--unset", "alerts")).document.schedule.alerts).toBeNull();
  const wrong = await update("--alerts", '{"stael":"1h"}');
  expect(wrong).toMatchObject({ code: 2 });
  expect(wrong.stderr).toMatch(/stael.*Did you mean .*stale/);
  expect(await update("--alerts", "soon")).toMatchObject({ code: 2 });
});

test("a test alert says whether it arrived, by its exit code too", async () => {
  bodies = [];
  const sent = await terminal.holdfast(["alerts", "test"]);
  expect(sent).toMatchObject({ code: 0, stdout: "slack: sent\n" });
  expect(bodies[0]).toContain("TEST");
  const failed = await json("alerts", "test", "--config", "bad.config.mjs");
  expect(failed).toMatchObject({
    code: 1,
    document: { ok: false, deliveries: [{ error: "answered with status 500" }] },
  });
});

test("mistakes are refused by name: exit code 2, or 1 where there is no such alert", async () => {
  const cases: [string[], number, RegExp][] = [
    [["alerts", "show", "nonsense"], 2, /must be an alert id/],
    [["alerts", "show", ID], 1, /There is no alert/],
    [["alerts", "show", ID.slice(-8)], 1, /There is no alert/],
    [["alerts", "show", ID.slice(-5)], 2, /at least 6 characters/],
    [["alerts", "list", "--cursor", ID.slice(-8)], 2, /must be the cursor/],
    [["alerts", "mute", ID], 2, /--for/],
    [["alerts", "mute", ID, "--for", "soon"], 2, /a duration such as/],
    [["alerts", "mute", ID, "--for", "2h"], 1, /There is no alert/],
    [["alerts", "acknowledge", ID], 1, /alerts list --state all/],
    [["alerts", "resolve", ID], 1, /There is no alert/],
    [["alerts", "list", "--kind", "slient"], 2, /Did you mean silent/],
    [["alerts", "test", "--destination", "slak"], 2, /must be one of slack/],
  ];
  for (const [args, code, message] of cases) {
    const ended = await terminal.holdfast(args);
    expect([args.join(" "), ended.code]).toEqual([args.join(" "), code]);
    expect(ended.stderr).toMatch(message);
  }
});
