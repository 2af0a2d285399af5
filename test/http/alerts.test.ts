// Alerts over HTTP, and on their way out: real receivers, a real mail server.

import { once } from "node:events";
import fs from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { SMTPServer } from "smtp-server";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyDispatch } from "../../src/index.js";
import { DATABASES, type House, newHouse, POSTGRES_URL, SECRETS } from "./house.js";

const SECRET = "0123456789abcdef-webhook";

type Received = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

/** Answers with 204 and keeps what came. */
async function receiver(): Promise<{ received: Received[]; url: string; server: Server }> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push({ path: request.url ?? "", headers: request.headers, body });
    response.writeHead(204).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { received, url: `http://127.0.0.1:${port}`, server };
}

/** Takes every mail of this user, and keeps it. */
async function mailServer(): Promise<{ mails: string[]; port: number; server: SMTPServer }> {
  const mails: string[] = [];
  const server = new SMTPServer({
    authOptional: false,
    disabledCommands: ["STARTTLS"],
    onAuth: ({ username, password }, _, done) =>
      password === "right-password"
        ? done(null, { user: username })
        : done(new Error("no such user")),
    onData: async (stream, _, done) => {
      let text = "";
      for await (const chunk of stream) text += chunk;
      mails.push(text);
      done();
    },
  });
  server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  return { mails, port: (server.server.address() as AddressInfo).port, server };
}

describe.each(DATABASES)("alerts over HTTP on %s", (database) => {
  let house: House;
  let post: Awaited<ReturnType<typeof receiver>>;
  let mail: Awaited<ReturnType<typeof mailServer>>;

  beforeEach(async () => {
    post = await receiver();
    mail = await mailServer();
    const smtp = (password: string) => ({
      host: "127.0.0.1",
      port: mail.port,
      secure: false,
      ignoreTLS: true,
      auth: { user: "holdfast", pass: password },
    });
    const shared = { allowPrivateNetwork: true };
    house = await newHouse(database, {
      options: {
        alerts: {
          failureRate: { atLeast: 1 },
          to: [
            { webhook: `${post.url}/hook`, secret: ["newest-secret-of-all", SECRET], ...shared },
            { slack: `${post.url}/services/secret`, ...shared },
            {
              email: "ops@example.com",
              from: "holdfast@example.com",
              smtp: smtp("right-password"),
            },
            { name: "locked-out", email: "ops@example.com", from: "a@b.c", smtp: smtp("wrong") },
          ],
          heartbeatUrl: { url: `${post.url}/ping`, ...shared },
        },
      },
    });
    house.holdfast.job("study", { run: () => undefined });
  });
  afterEach(async () => {
    await house.end();
    post.server.close();
    await new Promise<void>((resolve) => mail.server.close(() => resolve()));
  });

  /** A schedule with a rule that it breaks at once: its only run fails. */
  async function trouble(): Promise<void> {
    house.holdfast.job("bad", {
      retry: { attempts: 1 },
      run: () => {
        throw new Error("<b>no</b>\r\nBcc: somebody@example.com");
      },
    });
    await house.holdfast.enqueue("bad", null);
    await house.holdfast.tick();
  }

  test("a pass delivers its alerts to every destination, signed, escaped and once", async () => {
    await trouble();
    const { body } = await house.ask("GET", "/api/alerts", { secret: SECRETS.read });
    expect(body).toMatchObject({
      alerts: [
        {
          kind: "failureRate",
          severity: "critical",
          subject: { type: "job", name: "bad" },
          message: "1 of 1 run failed within 1 d: 100 %, above 20 %.",
          evidence: { failed: 1, ended: 1 },
          resolvedAt: null,
        },
      ],
      nextCursor: null,
    });
    const [alert] = body.alerts;
    const states = new Map(
      alert.deliveries.map((each: { destination: string }) => [each.destination, each]),
    );
    for (const name of ["webhook", "slack", "email"])
      expect(states.get(name)).toMatchObject({ state: "sent", attempts: 1, error: null });
    expect(states.get("locked-out")).toMatchObject({
      state: "pending",
      error: "SMTP failed: EAUTH 535",
    });
    const of = (path: string) => post.received.filter((each) => each.path === path);
    const [hook] = of("/hook");
    expect(
      verifyDispatch({ headers: hook?.headers ?? {}, body: hook?.body ?? "", secrets: SECRET }),
    ).toMatchObject({ ok: true, id: `${alert.id}-opened` });
    expect(JSON.parse(hook?.body ?? "")).toMatchObject({
      event: "alert.opened",
      alert: { id: alert.id, kind: "failureRate", firstAt: alert.firstAt },
    });
    expect(JSON.parse(of("/services/secret")[0]?.body ?? "")).toMatchObject({
      text: `CRITICAL failureRate: job "bad": ${alert.message}`,
    });
    expect(JSON.parse(of("/ping")[0]?.body ?? "")).toMatchObject({ openAlerts: 1 });
    expect(mail.mails).toHaveLength(1);
    expect(mail.mails[0]).toContain("Subject: =?UTF-8?Q?CRITICAL_failureRate=3A_job_=22bad=22?=");
    expect(mail.mails[0]).toContain(alert.message);
    expect(mail.mails[0]).not.toMatch(/^Bcc/m);
    await house.holdfast.tick();
    expect(of("/hook")).toHaveLength(1);
    expect(JSON.stringify([house.lines, body])).not.toMatch(
      /right-password|services\/secret|abcdef/,
    );
  });

  test("an alert is read, muted, acknowledged and resolved; the author is kept", async () => {
    await trouble();
    const { alerts } = await house.holdfast.alerts.list();
    const where = `/api/alerts/${alerts[0]?.id}`;
    const muted = await house.ask("POST", `${where}/mute`, { body: { for: "2h" } });
    expect(Date.parse(muted.body.mutedUntil) - Date.parse(muted.body.firstAt)).toBeGreaterThan(7e6);
    const seen = await house.ask("POST", `${where}/acknowledge`, { body: {} });
    expect(seen.body.acknowledgedBy).toMatch(/./);
    expect(
      (await house.ask("POST", `${where}/resolve`, { body: {} })).body.resolvedAt,
    ).not.toBeNull();
    expect((await house.ask("GET", "/api/alerts")).body.alerts).toEqual([]);
    const all = await house.ask(
      "GET",
      "/api/alerts?state=all&kind=failureRate&subject=bad&limit=1",
    );
    expect(all.body.alerts).toMatchObject([{ id: alerts[0]?.id }]);
    expect((await house.ask("GET", where)).body.id).toBe(alerts[0]?.id);
  });

  test("an alert is reached by six characters of its id, and candidates are named where several have them", async () => {
    const run = () => {
      throw new Error("no");
    };
    house.holdfast.job("worse", { retry: { attempts: 1 }, run });
    await house.holdfast.enqueue("worse", null);
    await trouble();
    const { alerts } = await house.holdfast.alerts.list();
    const [id, other] = alerts.map((alert) => alert.id) as [string, string];
    for (const fragment of [id.slice(-6), id.slice(-8).toUpperCase(), id.slice(-14)])
      expect((await house.ask("GET", `/api/alerts/${fragment}`)).body.id).toBe(id);
    const changes = { mute: { for: "2h" }, acknowledge: {}, resolve: {} };
    for (const [verb, body] of Object.entries(changes)) {
      const changed = await house.ask("POST", `/api/alerts/${id.slice(-8)}/${verb}`, { body });
      expect(changed.body.id).toBe(id);
      const several = await house.ask("POST", `/api/alerts/${id.slice(0, 6)}/${verb}`, { body });
      expect([several.status, several.body.error]).toEqual([409, "alert_ambiguous"]);
    }
    const { status, body } = await house.ask("GET", `/api/alerts/${id.slice(0, 6)}`);
    expect([status, body.error]).toEqual([409, "alert_ambiguous"]);
    for (const each of [id, other]) expect(body.detail).toContain(each);
    expect((await house.ask("GET", `/api/alerts/${id.slice(-5)}`)).status).toBe(404);
    expect((await house.ask("GET", "/api/alerts/00000000")).status).toBe(404);
  });

  test("wrong values are refused by name, and only an admin may change anything", async () => {
    const id = "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55";
    const status = async (method: string, where: string, body?: unknown, secret?: string) =>
      (
        await house.ask(method, where, {
          ...(body === undefined ? {} : { body }),
          ...(secret === undefined ? {} : { secret }),
        })
      ).status;
    expect(await status("GET", `/api/alerts/${id}`)).toBe(404);
    expect(await status("GET", "/api/alerts/nonsense")).toBe(404);
    expect(await status("POST", `/api/alerts/${id}/mute`, { for: "2h" })).toBe(404);
    expect(await status("POST", `/api/alerts/${id}/mute`, { for: "2 hours" })).toBe(400);
    expect(await status("POST", `/api/alerts/${id}/mute`, {})).toBe(400);
    expect(await status("GET", "/api/alerts?kind=nonsense")).toBe(400);
    expect(await status("GET", "/api/alerts?cursor=nonsense")).toBe(400);
    expect(await status("POST", `/api/alerts/${id}/acknowledge`, {}, SECRETS.read)).toBe(403);
    expect(await status("POST", "/api/alerts/test", {}, SECRETS.read)).toBe(403);
    expect(await status("GET", "/api/alerts", undefined, SECRETS.trigger)).toBe(403);
  });

  test("a test alert says of each destination whether it arrived", async () => {
    const { body } = await house.ask("POST", "/api/alerts/test", { body: {} });
    expect(body).toMatchObject({
      ok: false,
      deliveries: [
        { destination: "webhook", ok: true },
        { destination: "slack", ok: true },
        { destination: "email", ok: true },
        { destination: "locked-out", ok: false, error: "SMTP failed: EAUTH 535" },
      ],
    });
    expect(mail.mails[0]).toContain("Subject: TEST silent: a test");
    const one = await house.ask("POST", "/api/alerts/test", { body: { destination: "slack" } });
    expect(one.body).toMatchObject({ ok: true, deliveries: [{ destination: "slack" }] });
  });

  test("a schedule's rules go through PUT and come back as they were written", async () => {
    const alerts = {
      stale: "30m",
      failureRate: { above: 0.5, over: "12h", atLeast: 3 },
      silent: false,
    };
    const put = (given: unknown) =>
      house.ask("PUT", "/api/schedules/s", {
        body: { job: "study", cron: "0 0 1 1 *", alerts: given },
      });
    expect((await put(alerts)).body.schedule.alerts).toEqual(alerts);
    const wrong = await put({ stale: "soon", clockSkew: "5s" });
    expect(wrong.status).toBe(400);
    const fields = wrong.body.problems.map(({ field }: { field: string }) => field);
    expect(fields.join()).toMatch(/alerts\.clockSkew.*alerts\.stale/);
    expect((await put(false)).body.schedule.alerts).toMatchObject({ stale: false, broken: false });
  });
});

test.skipIf(POSTGRES_URL === undefined)(
  "slow claims: the transaction in the way is named by pid, application and age",
  async () => {
    const { default: pg } = await import("pg");
    const house = await newHouse("postgres", { options: { alerts: { slowClaims: "1s" } } });
    const client = new pg.Client({
      connectionString: POSTGRES_URL,
      application_name: "nightly-dump",
    });
    await client.connect();
    try {
      await client.query("begin isolation level repeatable read");
      const { rows } = await client.query("select pg_backend_pid() as pid, pg_sleep(1.1)");
      await house.holdfast.tick();
      const [alert] = (await house.holdfast.alerts.list({ kind: "slowClaims" })).alerts;
      expect(alert?.message).toMatch(
        new RegExp(
          `a transaction of pid ${rows[0]?.pid} \\(nightly-dump, user \\w+, idle in transaction\\) is open for \\d`,
        ),
      );
      expect(alert?.subject).toEqual({ type: "database", name: "claims" });
    } finally {
      await client.end();
      await house.end();
    }
  },
);

test.skipIf(POSTGRES_URL === undefined)(
  "slow claims: a table full of dead rows is named, with how many there are",
  async () => {
    const { default: pg } = await import("pg");
    const schema = `bloat_${crypto.randomUUID().replaceAll("-", "_")}`;
    const house = await newHouse("postgres", { options: { schema, alerts: { slowClaims: "5m" } } });
    const client = new pg.Client({ connectionString: POSTGRES_URL });
    await client.connect();
    try {
      await house.holdfast.alerts.list();
      const waiting = `"${schema}".waiting`;
      await client.query(`alter table ${waiting} set (autovacuum_enabled = off)`);
      await client.query(
        `insert into ${waiting} (id, wake_at, lane, policy, priority, attempt, losses, refunds, laters, extra, suspect)
         select gen_random_uuid(), 9e15, 1, 1, 0, 0, 0, 0, 0, 0, false from generate_series(1, 100001)`,
      );
      await client.query(`delete from ${waiting}`);
      await client.query("select pg_stat_force_next_flush()");
      await house.holdfast.tick();
      const [alert] = (await house.holdfast.alerts.list({ kind: "slowClaims" })).alerts;
      expect(alert?.message).toMatch(/the table waiting has 100001 dead rows beside 0 live ones/);
    } finally {
      await house.end();
      await client.query(`drop schema "${schema}" cascade`);
      await client.end();
    }
  },
);

test("slow claims: on SQLite a reader that keeps an old snapshot is reported, though not which", async () => {
  const { DatabaseSync } = await import("@photostructure/sqlite");
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "holdfast-alerts-"));
  const file = path.join(folder, "app.db");
  const house = await newHouse("sqlite", {
    options: { database: `sqlite:${file}`, alerts: { slowClaims: "1s" } },
  });
  await house.holdfast.alerts.list();
  const [reader, writer] = [new DatabaseSync(file), new DatabaseSync(file)];
  try {
    reader.exec("begin");
    reader.prepare("select count(*) from holdfast_run").get();
    writer.exec("create table filler (data); insert into filler values (zeroblob(20000000))");
    await house.holdfast.tick();
    const [alert] = (await house.holdfast.alerts.list({ kind: "slowClaims" })).alerts;
    expect(alert?.message).toMatch(
      /a reader keeps an old snapshot, and \d{4,} pages .* \(SQLite does not say which process\)/,
    );
  } finally {
    reader.close();
    writer.close();
    await house.end();
    await fs.rm(folder, { recursive: true, force: true });
  }
});
