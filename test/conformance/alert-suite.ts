// Alerts in the database: one turn for many callers, one open alert for a kind and subject, deliveries
// that one caller gets at a time.

import { expect } from "vitest";
import type { Finding } from "../../src/alerts/rules/alert.js";
import type { AlertWrites } from "../../src/store/alerts/alerts.js";
import type { Store } from "../../src/store/store.js";
import type { Scene, SceneTest } from "./scene.js";

const MINUTE_MS = 60_000;
const NOTHING: AlertWrites = { opens: [], holds: [], resolves: [] };
const BROKEN: Finding = {
  kind: "broken",
  subject: { type: "schedule", name: `it's "odd"; drop table` },
  message: "a message with ' and \\ and 🦊",
  evidence: { error: "' ; --", list: [1, null] },
};

function write(scene: Scene, writes: Partial<AlertWrites>, store: Store = scene.store) {
  return store.alerts.write({ ...NOTHING, ...writes });
}

async function opened(scene: Scene) {
  const id = scene.id();
  const { told } = await write(scene, { opens: [{ ...BROKEN, id }] });
  expect(told.map((each) => each.id)).toEqual([id]);
  return id;
}

function claim(scene: Scene, store = scene.store, destinations = ["hook"]) {
  return store.alerts.claimDeliveries({ destinations, leaseMs: MINUTE_MS, limit: 10 });
}

export function alertSuite(test: SceneTest): void {
  test("of callers at the same time one gets the turn, and the next one after the interval", async ({
    scene,
  }) => {
    const turn = () =>
      scene.store.alerts.takeTurn({ holder: scene.holder, skewMs: null, everyMs: MINUTE_MS });
    const turns = await Promise.all([turn(), turn(), turn(), turn()]);
    expect(turns.filter(({ isMine }) => isMine)).toHaveLength(1);
    expect(turns[0]?.now).toBe(scene.now);
    scene.advance(MINUTE_MS - 1);
    expect((await turn()).isMine).toBe(false);
    scene.advance(1);
    expect((await turn()).isMine).toBe(true);
    // A clock that was put back does not stop it for as long as it was ahead.
    scene.advance(-3 * MINUTE_MS);
    expect((await turn()).isMine).toBe(true);
  });

  test("an alert is stored as it was found, and is listed with its deliveries", async ({
    scene,
  }) => {
    const id = await opened(scene);
    expect(await claim(scene, scene.store, ["hook", "mail"])).toHaveLength(2);
    const [alert] = await scene.store.alerts.list({ limit: 10 });
    expect(alert).toEqual({
      id,
      ...BROKEN,
      severity: "critical",
      firstAt: scene.now,
      lastAt: scene.now,
      resolvedAt: null,
      resolvedBy: null,
      mutedUntil: null,
      acknowledgedAt: null,
      acknowledgedBy: null,
      deliveries: ["hook", "mail"].map((destination) => ({
        ...{
          destination,
          event: "opened",
          state: "pending",
          attempts: 1,
          at: scene.now,
          error: null,
        },
      })),
    });
    const [open] = await scene.store.alerts.listOpen();
    expect(open).toEqual({ id, ...BROKEN, lastAt: scene.now });
  });

  test("two concurrent opens of the same alert open one, and a resolved alert may be opened again", async ({
    scene,
  }) => {
    const other = scene.place.isShared ? await scene.open() : scene.store;
    const both = await Promise.all([
      write(scene, { opens: [{ ...BROKEN, id: scene.id() }] }),
      write(scene, { opens: [{ ...BROKEN, id: scene.id() }] }, other),
    ]);
    expect(both.flatMap(({ told }) => told)).toHaveLength(1);
    const [first] = await scene.store.alerts.listOpen();
    scene.advance(MINUTE_MS);
    const resolves = [{ id: first?.id as string, message: "over" }];
    expect((await write(scene, { resolves })).resolved).toMatchObject([
      { id: first?.id, message: "over", resolvedAt: scene.now },
    ]);
    expect((await write(scene, { resolves })).resolved).toEqual([]);
    await opened(scene);
    expect(await scene.store.alerts.list({ state: "resolved", limit: 10 })).toHaveLength(1);
    expect(
      await scene.store.alerts.list({ state: "open", kind: "broken", limit: 10 }),
    ).toHaveLength(1);
    expect(await scene.store.alerts.list({ kind: "stale", limit: 10 })).toEqual([]);
  });

  test("a delivery is claimed by one at a time, and by the next one when its lease is over", async ({
    scene,
  }) => {
    const id = await opened(scene);
    const [first] = await claim(scene);
    expect(first).toMatchObject({
      alert: { id },
      event: "opened",
      destination: "hook",
      attempt: 1,
    });
    expect(await claim(scene)).toEqual([]);
    scene.advance(MINUTE_MS);
    const [second] = await claim(scene);
    expect(second?.attempt).toBe(2);
    const end = { alert: id, event: "opened", destination: "hook", delayMs: 5_000 } as const;
    await scene.store.alerts.endDelivery({
      ...end,
      attempt: 1,
      state: "failed",
      error: "too late",
    });
    await scene.store.alerts.endDelivery({ ...end, attempt: 2, state: "pending", error: "503" });
    const deliveries = async () => (await scene.store.alerts.list({ id, limit: 1 }))[0]?.deliveries;
    expect(await deliveries()).toMatchObject([{ state: "pending", attempts: 2, error: "503" }]);
    scene.advance(4_999);
    expect(await claim(scene)).toEqual([]);
    scene.advance(1);
    expect(await claim(scene)).toHaveLength(1);
    await scene.store.alerts.endDelivery({ ...end, attempt: 3, state: "sent", error: null });
    scene.advance(10 * MINUTE_MS);
    expect(await claim(scene)).toEqual([]);
    expect(await deliveries()).toMatchObject([{ state: "sent", attempts: 3, error: null }]);
  });

  test("an alert that was muted before its first delivery is delivered neither at its start nor at its end", async ({
    scene,
  }) => {
    const id = await opened(scene);
    expect(await scene.store.alerts.mark({ id, mark: "mute", forMs: MINUTE_MS })).toBe(true);
    await write(scene, { resolves: [{ id, message: "over" }] });
    const again = scene.id();
    const { told } = await write(scene, {
      opens: [{ ...BROKEN, id: again }],
    });
    expect(told).toEqual([]);
    expect((await scene.store.alerts.list({ id: again, limit: 1 }))[0]?.mutedUntil).toBe(
      scene.now + MINUTE_MS,
    );
    const events = async () => (await claim(scene)).map(({ alert, event }) => [alert.id, event]);
    expect(await events()).toEqual([]);
    scene.advance(MINUTE_MS);
    const hold = { holds: [{ id: again, finding: BROKEN }] };
    expect((await write(scene, hold)).told.map((each) => each.id)).toEqual([again]);
    scene.advance(1);
    expect((await write(scene, hold)).told).toEqual([]);
    expect(await events()).toContainEqual([again, "opened"]);
    expect(await scene.store.alerts.mark({ id: scene.id(), mark: "mute", forMs: 1 })).toBe(false);
  });

  test("alerts are found by the beginning or the end of their id, newest first and as many as are wanted", async ({
    scene,
  }) => {
    const ids = [
      "0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "0199c1f2-5a3e-7c41-9d0b-aaaaaaaaaaaa",
      "0199c1f3-0000-7000-8000-2f6c1c8e7a55",
    ];
    const subject = (name: string) => ({ type: "schedule", name }) as const;
    await write(scene, { opens: ids.map((id) => ({ ...BROKEN, id, subject: subject(id) })) });
    const [first, second, third] = ids as [string, string, string];
    await write(scene, { resolves: [{ id: first, message: "over" }] });
    const like = (digits: string, limit = 10) => scene.store.alerts.withDigits({ digits, limit });
    expect(await like("0199c1")).toEqual([third, second, first]);
    expect(await like("0199c1", 2)).toEqual([third, second]);
    expect(await like("0199c1f25a3e7c419d0baa")).toEqual([second]);
    expect(await like("8e7a55")).toEqual([third, first]);
    expect(await like("0b2f6c1c8e7a55")).toEqual([first]);
    expect(await like("c41")).toEqual([]);
  });

  test("schedules are seen when they are late, without a next tick, broken or have rules of their own", async ({
    scene,
  }) => {
    await scene.announce("works", scene.store, {
      works: { jobs: ["study"], queues: ["other"] },
    });
    await scene.enqueued(2);
    scene.advance(10 * MINUTE_MS);
    await scene.poll();
    const seen = await scene.store.alerts.observeSchedules();
    expect(seen).toMatchObject({ now: scene.now, schedules: [], ticks: [] });
    const rest = await scene.store.alerts.observeRest({
      silentMs: 1,
      ranMs: 1,
      reclaimedMs: 60 * MINUTE_MS,
      isRunningCounted: true,
      runningOf: ["s"],
      unattendedMs: 5 * MINUTE_MS,
      skewMs: 1,
      transactionMs: MINUTE_MS,
      waitedMs: null,
      skips: 3,
      ratesOf: [{ schedule: "s", overMs: MINUTE_MS }],
      ends: { depth: 3, of: null },
    });
    expect(rest).toMatchObject({
      runs: [],
      running: { total: 0, bySchedule: {} },
      jobs: [{ job: "study", queue: "default", runs: 2 }],
      reclaims: [],
      skews: [],
      scheduleRates: [],
      ends: [],
      pausedTicks: {},
    });
    await scene.claim({ limit: 1 });
    scene.advance(MINUTE_MS);
    const nothing = {
      reclaimedMs: null,
      unattendedMs: null,
      skewMs: null,
      transactionMs: null,
      waitedMs: null,
      skips: null,
      ratesOf: [],
      ends: null,
    };
    const held = await scene.store.alerts.observeRest({
      ...{ silentMs: MINUTE_MS, ranMs: null, isRunningCounted: true, runningOf: [], ...nothing },
    });
    expect(held.runs).toMatchObject([
      { job: "study", schedule: null, silentMs: MINUTE_MS, items: 0 },
    ]);
    expect(held.running.total).toBe(1);
  });
}
