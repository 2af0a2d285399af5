// Tests the delivery of alerts: once, by any instance, again if it did not arrive; never while muted, and never with
// a secret in it.

import { expect } from "vitest";
import type { AlertNotice } from "../../src/alerts/alert-view.js";
import { verifyDispatch } from "../../src/remote/dispatch/signature.js";
import { broken, RecordingNetwork, response } from "../support/recording-network.js";
import { NOBODY, openKinds, type Watcher, watcher } from "./alert-fixtures.js";
import { MINUTE, SECOND, student } from "./schedule-fixtures.js";
import { heard, type World, type WorldTest } from "./world.js";

const SECRET = "0123456789abcdef-secret";
const SLACK = "https://hooks.slack.example/services/T0/B0/very-secret-path";
const HOOK = "https://alerts.example.com/in";

/** A schedule that cannot be evaluated; answers with how to mend it. */
async function trouble(world: World, name = "s"): Promise<() => Promise<void>> {
  const one = student(world, { options: { alerts: false } });
  const rules = { job: "study", cron: "0 0 1 1 *" };
  await one.holdfast.schedules.upsert(name, rules);
  await world.execute("update {schedule} set broken_at = 1, broken_error = 'no such zone'");
  return () => world.execute("update {schedule} set broken_at = null");
}

function network(): RecordingNetwork {
  return new RecordingNetwork()
    .names("hooks.slack.example", ["93.184.216.34"])
    .names("alerts.example.com", ["93.184.216.34"]);
}

function bodies({ sent }: RecordingNetwork): { [member: string]: unknown }[] {
  return sent.map(({ body }) => JSON.parse(new TextDecoder().decode(body)) as never);
}

async function onlyAlert({ holdfast }: Pick<Watcher, "holdfast">) {
  const { alerts } = await holdfast.alerts.list({ state: "all" });
  expect(alerts).toHaveLength(1);
  return alerts[0] as NonNullable<(typeof alerts)[number]>;
}

export function alertDeliverySuite(test: WorldTest): void {
  test("of two instances one sends an alert, once", async ({ world }) => {
    await trouble(world);
    const one = await watcher(world);
    await world.clock.advance(20 * SECOND);
    const other = await watcher(world);
    await world.clock.advance(10 * MINUTE);
    expect([...one.lines(), ...other.lines()]).toEqual(["opened broken s"]);
    const turns = [one, other].flatMap(({ faults }) =>
      faults.calls.filter(({ verb }) => verb === "alerts.listOpen"),
    );
    expect(turns.length).toBeLessThanOrEqual(11);
    const alert = await onlyAlert(one);
    expect(alert.deliveries).toMatchObject([
      { destination: "function", event: "opened", state: "sent", attempts: 1, error: null },
    ]);
  });

  test("two instances that look at the same moment open one alert", async ({ world }) => {
    await trouble(world);
    const pair = [await watcher(world), await watcher(world)];
    await world.clock.advance(5 * MINUTE);
    expect(pair.flatMap((each) => each.lines())).toEqual(["opened broken s"]);
  });

  test("an instance that dies while it delivers leaves the rest to another", async ({ world }) => {
    await trouble(world);
    const never = () => new Promise<void>(() => undefined);
    const dying = await watcher(world, { alerts: { to: [{ call: never, timeout: "60s" }] } });
    await world.clock.advance(MINUTE + SECOND);
    dying.clock.pause();
    const heir = await watcher(world);
    await world.clock.advance(5 * MINUTE);
    expect(heir.lines()).toEqual(["opened broken s"]);
    expect((await onlyAlert(heir)).deliveries).toMatchObject([{ state: "sent", attempts: 2 }]);
  });

  test("a webhook is signed as a dispatch is, with one id for one event", async ({ world }) => {
    const mend = await trouble(world);
    const net = network();
    let calls = 0;
    net.answer = (request) => {
      request.onConnected();
      calls += 1;
      return response(calls === 1 ? 503 : 204);
    };
    const alerts = { to: [{ webhook: HOOK, secret: SECRET }] };
    const page = await watcher(world, { alerts, network: net });
    await world.clock.advance(2 * MINUTE);
    await mend();
    await world.clock.advance(2 * MINUTE);
    const alert = await onlyAlert(page);
    expect(bodies(net).map(({ event }) => event)).toEqual([
      "alert.opened",
      "alert.opened",
      "alert.resolved",
    ]);
    const verdicts = net.sent.map(({ headers, body }) =>
      verifyDispatch({ headers, body, secrets: SECRET, nowMs: world.now() }),
    );
    expect(verdicts.map((each) => each.ok && each.id)).toEqual([
      `${alert.id}-opened`,
      `${alert.id}-opened`,
      `${alert.id}-resolved`,
    ]);
    expect(bodies(net)[0]?.alert).toMatchObject({
      id: alert.id,
      kind: "broken",
      subject: { type: "schedule", name: "s" },
      message: alert.message,
    });
  });

  test("Slack gets the body that it accepts, with names that mention nobody", async ({ world }) => {
    const name = "<!channel> & *all*";
    await trouble(world, name);
    const net = network();
    const page = await watcher(world, { alerts: { to: [{ slack: SLACK }] }, network: net });
    await world.clock.advance(2 * MINUTE);
    const [body] = bodies(net);
    expect(net.sent[0]).toMatchObject({ path: "/services/T0/B0/very-secret-path", method: "POST" });
    expect(body?.text).toMatch(
      /^CRITICAL broken: schedule "&lt;!channel&gt; &amp; \*all\*": Has been broken/,
    );
    expect(body).toMatchObject({
      blocks: [{ type: "section" }, { type: "section" }, { type: "context" }],
    });
    expect((await onlyAlert(page)).subject.name).toBe(name);
  });

  test("a receiver that is dead blocks nothing, is tried again with backoff, and given up at last", async ({
    world,
  }) => {
    await trouble(world);
    const net = network();
    net.answer = () => {
      throw broken("ECONNREFUSED");
    };
    const told: AlertNotice[] = [];
    const to = [{ webhook: HOOK, secret: SECRET }, (alert: AlertNotice) => void told.push(alert)];
    const page = await watcher(world, { alerts: { to }, network: net });
    await world.clock.advance(MINUTE + SECOND);
    expect(told).toHaveLength(1);
    await world.clock.advance(30 * SECOND);
    const tries = heard(page, "alert.undelivered").length;
    expect(tries).toBeGreaterThan(1);
    expect((await onlyAlert(page)).deliveries).toMatchObject([
      { destination: "function", state: "sent" },
      { destination: "webhook", state: "pending", error: "ECONNREFUSED" },
    ]);
    await world.clock.advance(5 * 60 * MINUTE);
    const events = heard(page, "alert.undelivered");
    expect(events).toHaveLength(12);
    expect(events.at(-1)).toMatchObject({ destination: "webhook", attempt: 12, retryInMs: null });
    const delivery = (await onlyAlert(page)).deliveries.find((each) => each.state === "failed");
    expect(delivery).toMatchObject({ destination: "webhook", attempts: 12 });
    expect(told).toHaveLength(1);
  });

  test("no secret is in messages, lists or refusals", async ({ world }) => {
    await trouble(world);
    const net = network();
    net.answer = (request) => {
      request.onConnected();
      return response(403, `you sent ${SECRET}`);
    };
    const smtp = "smtp://mailer:very-secret-password@127.0.0.1:1";
    const to = [
      { webhook: HOOK, secret: SECRET },
      { slack: SLACK },
      { email: "ops@example.com", from: "me@example.com", smtp, timeout: "1s" },
    ];
    const heartbeatUrl = { url: HOOK, token: "very-secret-token" };
    const page = await watcher(world, { alerts: { to, heartbeatUrl }, network: net });
    await world.clock.advance(2 * MINUTE);
    const { deliveries } = await onlyAlert(page);
    expect(deliveries.map(({ error }) => error)).toContain("answered with status 403");
    const all = JSON.stringify([page.said, deliveries]);
    expect(all).not.toMatch(/secret/);
    expect(heard(page, "alert.heartbeat_failed")[0]).toMatchObject({
      error: "answered with status 403",
    });
  });

  test("a muted alert is delivered when the mute is over, if it still holds; so is its next one", async ({
    world,
  }) => {
    const mend = await trouble(world);
    const page = await watcher(world);
    await world.clock.advance(MINUTE + SECOND);
    const { id } = await onlyAlert(page);
    const muted = await page.holdfast.alerts.mute(id, "2h");
    expect(muted.mutedUntil?.getTime()).toBe(world.now() + 120 * MINUTE);
    await mend();
    await world.clock.advance(2 * MINUTE);
    expect((await page.holdfast.alerts.get(id))?.resolvedAt).not.toBeNull();
    await world.execute("update {schedule} set broken_at = 1");
    await world.clock.advance(2 * MINUTE);
    expect(await openKinds(page)).toEqual(["broken s"]);
    expect(page.lines()).toEqual(["opened broken s"]);
    await world.clock.advance(120 * MINUTE);
    expect(page.lines()).toEqual(["opened broken s", "opened broken s"]);
    expect(heard(page, "alert.opened")).toHaveLength(2);
  });

  test("the first acknowledgement stays, and an alert that was resolved by hand returns if it still holds", async ({
    world,
  }) => {
    await trouble(world);
    const page = await watcher(world);
    await world.clock.advance(MINUTE + SECOND);
    const { id } = await onlyAlert(page);
    const { alerts } = page.holdfast;
    await alerts.acknowledge(id, { by: "anna" });
    const seen = await alerts.acknowledge(id, { by: "ben" });
    expect(seen).toMatchObject({ acknowledgedBy: "anna", resolvedAt: null });
    expect(await alerts.resolve(id, { by: "ben" })).toMatchObject({ resolvedBy: "ben" });
    expect((await alerts.list()).alerts).toEqual([]);
    await world.clock.advance(MINUTE);
    const { alerts: all, nextCursor } = await alerts.list({ state: "all", limit: 1 });
    expect(all).toMatchObject([{ acknowledgedBy: null, resolvedAt: null }]);
    const rest = await alerts.list({ state: "all", cursor: nextCursor as string });
    expect(rest.alerts.map((each) => each.id)).toEqual([id]);
    await expect(alerts.mute(id.replace(/^./, "f"), "1h")).rejects.toMatchObject({
      code: "ALERT_NOT_FOUND",
    });
    await expect(alerts.acknowledge("nonsense")).rejects.toMatchObject({ code: "ALERT_NOT_FOUND" });
  });

  test("an alert is reached by six characters of the beginning or the end of its id; several that match are named", async ({
    world,
  }) => {
    await trouble(world);
    const page = await watcher(world);
    await world.clock.advance(MINUTE + SECOND);
    const { id } = await onlyAlert(page);
    const { alerts } = page.holdfast;
    for (const fragment of [id.slice(-6), id.slice(-14), id.slice(0, 30), id.toUpperCase()])
      expect(await alerts.get(fragment)).toMatchObject({ id });
    expect(await alerts.mute(id.slice(-8), "1h")).toMatchObject({ id });
    expect(await alerts.acknowledge(id.slice(-8).toUpperCase())).toMatchObject({ id });
    expect(await alerts.resolve(id.slice(-8))).toMatchObject({ id });
    const { entries } = await page.holdfast.audit.list({ noun: "alert" });
    expect(entries.map(({ verb, name }) => [verb, name])).toEqual([
      ["resolve", id],
      ["acknowledge", id],
      ["mute", id],
    ]);
    expect(await alerts.get(id.slice(-5))).toBeNull();
    expect(await alerts.get("00000000")).toBeNull();
    await expect(alerts.resolve("00000000")).rejects.toMatchObject({ code: "ALERT_NOT_FOUND" });
    await world.clock.advance(61 * MINUTE);
    const { alerts: both } = await alerts.list({ state: "all" });
    const candidates = both.map((each) => each.id);
    expect(candidates).toHaveLength(2);
    const several = { code: "ALERT_AMBIGUOUS", candidates, hasMore: false };
    await expect(alerts.get(id.slice(0, 6))).rejects.toMatchObject(several);
    await expect(alerts.resolve(id.slice(0, 6))).rejects.toMatchObject(several);
    expect((await alerts.list()).alerts).toHaveLength(1);
  });

  test("the heartbeat goes out each minute while the database answers, from one instance", async ({
    world,
  }) => {
    const nets = [network(), network()];
    const alerts = { heartbeatUrl: { url: HOOK, token: "abc" }, to: [] };
    const one = await watcher(world, { alerts, network: nets[0] as RecordingNetwork });
    await watcher(world, { alerts, network: nets[1] as RecordingNetwork });
    await world.clock.advance(10 * MINUTE + SECOND);
    const sent = nets.flatMap((net) => net.sent);
    expect(sent.length).toBeGreaterThanOrEqual(9);
    expect(sent.length).toBeLessThanOrEqual(10);
    expect(sent[0]?.headers).toMatchObject({ authorization: "Bearer abc" });
    expect(nets.flatMap(bodies)[0]).toMatchObject({ openAlerts: 0, app: null });
    one.faults.goDown();
    const before = nets[0]?.sent.length;
    await world.clock.advance(3 * MINUTE);
    expect(nets[0]?.sent).toHaveLength(before ?? -1);
  });

  test("a test alert goes to every destination at once and says what became of each", async ({
    world,
  }) => {
    const net = network();
    net.answer = () => {
      throw broken("ECONNRESET");
    };
    const told: AlertNotice[] = [];
    const to = [
      { slack: SLACK, name: "ops" },
      { call: (each: AlertNotice) => void told.push(each) },
    ];
    const page = await watcher(world, { alerts: { to }, network: net });
    expect(await world.clock.until(page.holdfast.alerts.test())).toEqual({
      ok: false,
      deliveries: [
        { destination: "ops", ok: false, error: "ECONNRESET" },
        { destination: "function", ok: true, error: null },
      ],
    });
    expect(told).toMatchObject([{ event: "test", severity: "warning" }]);
    await expect(page.holdfast.alerts.test({ destination: "opps" })).rejects.toThrow(
      /must be one of ops, function/,
    );
    expect((await page.holdfast.alerts.list({ state: "all" })).alerts).toEqual([]);
    const bare = world.member();
    await expect(bare.holdfast.alerts.test()).rejects.toThrow(/has no destination/);
  });

  test("resolved alerts are removed after the retention, open ones never", async ({ world }) => {
    const mend = await trouble(world, "a");
    const page = await watcher(world);
    await world.clock.advance(2 * MINUTE);
    await mend();
    await world.clock.advance(2 * MINUTE);
    const store = await world.store();
    const prune = () => store.retention.prune({ keepMs: MINUTE, keepTicksMs: 1e10, limit: 100 });
    await world.clock.advance(2 * MINUTE);
    await prune();
    expect((await page.holdfast.alerts.list({ state: "all" })).alerts).toEqual([]);
    const rows = await world.rows(`select count(*) as left from ${world.table("alert_delivery")}`);
    expect(Number(rows[0]?.left)).toBe(0);
    await world.execute("update {schedule} set broken_at = 1");
    await world.clock.advance(10 * MINUTE);
    await prune();
    expect(await openKinds(page)).toEqual(["broken a"]);
  });

  test("an idle instance that has not the turn asks once a minute and nothing else", async ({
    world,
  }) => {
    const first = await watcher(world);
    await world.clock.advance(10 * SECOND);
    const second = await watcher(world, { start: NOBODY });
    await world.clock.advance(10 * MINUTE);
    const verbs = [
      "alerts.takeTurn",
      "alerts.observeSchedules",
      "alerts.observeRest",
      "alerts.listOpen",
      "alerts.write",
    ];
    const count = (verb: string) => second.faults.calls.filter((call) => call.verb === verb).length;
    expect(count("alerts.takeTurn")).toBeLessThanOrEqual(10);
    expect(verbs.slice(1).map(count)).toEqual([0, 0, 0, 0]);
    expect(first.faults.calls.filter(({ verb }) => verb === "alerts.listOpen").length).toBe(10);
  });
}
