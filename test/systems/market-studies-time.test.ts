// Document 001, its times and limits: ten minutes, two hours, thirty minutes for ten studies, a fifth of a
// day's jobs, 02:00 in Paris. The service is real, the clock is the test's.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { AlertNotice } from "holdfast";
import { createTestHoldfast } from "holdfast/testing";
import { expect, onTestFinished, test } from "vitest";
import { alerts, defineStudies, NIGHTLY, STUDY } from "../../examples/market-studies/studies.js";

type Sent = { readonly runId: string; readonly fence: number };

/** The studies, sent to a service that takes every run and says no more. */
async function kitted({ now = "2026-01-15T12:00:00Z", lease = "10m" } = {}) {
  const sent: Sent[] = [];
  const answer = { status: 202 };
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    sent.push(JSON.parse(text));
    response.writeHead(answer.status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const told: AlertNotice[] = [];
  const options = {
    publicUrl: "http://127.0.0.1:4780",
    workers: { studies: { url, secret: "a-secret-for-the-worker", allowPrivateNetwork: true } },
    alerts: { ...alerts, to: [(alert: AlertNotice) => void told.push(alert)] },
  };
  const kit = await createTestHoldfast({
    now,
    options,
    setup: (holdfast) => defineStudies(holdfast, lease),
  });
  onTestFinished(() => kit.close());
  const tick = () => kit.until(kit.holdfast.tick({ limit: 5 }));
  const kinds = () => told.filter(({ event }) => event === "opened").map(({ kind }) => kind);
  return { kit, sent, answer, told, kinds, tick, ...kit.app };
}

const ten = { studyIds: Array.from({ length: 10 }, (_, no) => `TEST_STUDY_${no}`) };

test("a worker that is silent has its job for ten minutes, then the cron's next call sends it again; the third time it fails and says why", async () => {
  const { kit, study, tick, sent } = await kitted();
  const { id } = await study.enqueue(ten);
  expect(await tick()).toMatchObject({ dispatched: 1 });
  await kit.advance("9m");
  expect(await tick()).toMatchObject({ dispatched: 0, reclaimed: 0 });
  await kit.advance("61s");
  expect(await tick()).toMatchObject({ dispatched: 1, reclaimed: 1 });
  for (let call = 0; call < 5; call += 1) {
    await kit.advance("5m");
    await tick();
  }
  expect(sent).toHaveLength(3);
  expect(new Set(sent.map(({ fence }) => fence)).size).toBe(3);
  const run = await kit.holdfast.runs.get(id);
  expect(run).toMatchObject({ status: "failed", attempt: 3 });
  expect(run?.error?.message).toMatch(/lease|silent|heartbeat/i);
});

test("a job that is at it for two hours ends with TIMEOUT, however often it was heard of", async () => {
  const { kit, study, tick, sent } = await kitted();
  const { id } = await study.enqueue(ten);
  await tick();
  const [{ fence } = { fence: 0 }] = sent;
  for (let minute = 5; minute < 120; minute += 5) {
    await kit.advance("5m");
    await kit.holdfast.remote.beat({ id, fence });
  }
  expect(await tick()).toMatchObject({ reclaimed: 0 });
  await kit.advance("6m");
  await tick();
  const [attempt] = await kit.holdfast.runs.attempts(id);
  expect(attempt).toMatchObject({ end: "timeout", error: { code: "TIMEOUT" } });
});

test("alerts: more than five at once, thirty minutes for ten studies, a fifth of the jobs failed", async () => {
  const { kit, study, tick, kinds, answer, sent } = await kitted();
  for (let no = 0; no < 6; no += 1) await study.enqueue(ten);
  await tick();
  expect(kinds()).toEqual([]);
  await tick();
  await kit.advance("2m");
  await tick();
  expect(kinds()).toEqual(["running"]);
  // One goes on, and slowly; five fall silent.
  const [slow] = sent;
  const beat = () => kit.holdfast.remote.beat({ id: String(slow?.runId), fence: slow?.fence ?? 0 });
  for (let minute = 0; minute < 30; minute += 3) {
    await beat();
    await kit.advance("3m");
  }
  await beat();
  await tick();
  expect(kinds()).toContain("slow");
  answer.status = 422;
  for (let no = 0; no < 3; no += 1) {
    await kit.advance("5m");
    await tick();
  }
  const failed = (await kit.runs({ status: "failed" })).length;
  expect(failed).toBeGreaterThan(0);
  expect(kinds()).toContain("failureRate");
});

test("a silent job is an alert before its ten minutes are over and another worker gets it", async () => {
  const { kit, study, tick, kinds } = await kitted();
  await study.enqueue({ studyIds: ["TEST_STUDY_1"] });
  await tick();
  await kit.advance("8m");
  await tick();
  expect(kinds()).not.toContain("stale");
  await kit.advance("90s");
  expect(await tick()).toMatchObject({ reclaimed: 0 });
  expect(kinds()).toContain("stale");
  await kit.advance("1m");
  expect(await tick()).toMatchObject({ reclaimed: 1 });
});

test("a job that another worker gets is an alert that names the silent one, for an hour", async () => {
  const { kit, study, tick, kinds, sent } = await kitted();
  const { id } = await study.enqueue({ studyIds: ["TEST_STUDY_1"] });
  await tick();
  await kit.advance("11m");
  expect(await tick()).toMatchObject({ reclaimed: 1 });
  await kit.advance("1m");
  await tick();
  expect(sent).toHaveLength(2);
  expect(kinds()).toContain("reclaimed");
  const [alert] = (await kit.holdfast.alerts.list({ kind: "reclaimed" })).alerts;
  expect(alert?.message).toContain(id);
  for (let minute = 0; minute < 65; minute += 5) {
    await kit.holdfast.remote.beat({ id, fence: sent[1]?.fence ?? 0 });
    await kit.advance("5m");
    await tick();
  }
  const { alerts } = await kit.holdfast.alerts.list({ kind: "reclaimed", state: "open" });
  expect(alerts).toEqual([]);
});

test("the first of ten studies may take longer than three minutes without an alert", async () => {
  const { kit, study, tick, kinds, sent } = await kitted();
  const { id } = await study.enqueue(ten);
  await tick();
  for (let minute = 0; minute < 10; minute += 5) {
    await kit.advance("5m");
    await kit.holdfast.remote.beat({ id, fence: sent[0]?.fence ?? 0 });
    await tick();
  }
  expect(kinds()).toEqual([]);
});

test("the nightly studies are due at 02:00 in Paris, once, though the cron comes at five past, twice", async () => {
  const { kit, tick, sent } = await kitted({ now: "2026-01-15T00:00:00Z" });
  await tick();
  await kit.advanceTo("2026-01-15T00:59:00Z");
  expect(await tick()).toMatchObject({ fired: [] });
  await kit.advanceTo("2026-01-15T01:05:00Z");
  const answers = [await tick(), await tick()];
  expect(answers.map(({ fired }) => fired.length)).toEqual([1, 0]);
  expect(sent).toMatchObject([
    { job: STUDY, mode: "scheduled", nominalAt: "2026-01-15T01:00:00.000Z" },
  ]);
  expect(await kit.ticks(NIGHTLY)).toMatchObject([{ outcome: "fired", reason: "late" }]);
});

test("a job that is cancelled before its time is never sent", async () => {
  const { kit, study, tick, sent } = await kitted();
  const { id } = await study.enqueue(ten, { delay: "1h" });
  await kit.holdfast.runs.cancel(id);
  await kit.advance("2h");
  await tick();
  expect(sent).toEqual([]);
  expect(await kit.holdfast.runs.get(id)).toMatchObject({ status: "cancelled" });
});
