// The audit trail: one entry for a change, in its transaction, and none where nothing was changed.

import { expect } from "vitest";
import { type AuditEntry, auditEntry } from "../../src/operations/rules/audit.js";
import type { Scene, SceneTest } from "./scene.js";
import { changeOf, MINUTE_MS, UPRIGHT } from "./schedule-fixtures.js";

const ADA = {
  via: "http",
  who: "ada",
  scope: "admin",
  address: "10.0.0.7",
  requestId: "r-1",
} as const;

function entry(verb: string, noun: AuditEntry["noun"], name: string | null): AuditEntry {
  return auditEntry(ADA, { verb, noun, name, note: "why", change: "what" });
}

async function lines(scene: Scene): Promise<string[]> {
  const records = await scene.store.audit.list({ limit: 100 });
  return records.map(({ verb, noun, name }) => `${verb} ${noun} ${name}`);
}

export function auditSuite(test: SceneTest): void {
  test("an entry has the actor, the origin, the time, the reason and the change", async ({
    scene,
  }) => {
    await scene.store.pause.begin({
      by: "ada",
      note: null,
      audit: entry("pause", "everything", null),
    });
    expect(await scene.store.audit.list({ limit: 10 })).toEqual([
      { ...entry("pause", "everything", null), id: expect.any(Number), at: scene.now },
    ]);
  });

  test("entries about a run or an alert are found by the beginning or the end of its id, those about an instance by host and pid", async ({
    scene,
  }) => {
    const [run, alert, twin] = [scene.id(), scene.id(), `${scene.id().slice(0, -6)}abcdef`];
    const instance = `web%1:77:${scene.id()}`;
    await scene.store.audit.add(entry("cancel", "run", run));
    await scene.store.audit.add(entry("mute", "alert", alert));
    await scene.store.audit.add(entry("quiet", "instance", instance));
    await scene.store.audit.add(entry("pause", "schedule", twin));
    const found = async (name: string) =>
      (await scene.store.audit.list({ limit: 10, name })).map((each) => each.name);
    for (const id of [run, alert])
      for (const part of [id, id.slice(-8), id.slice(0, 30), id.replaceAll("-", "").slice(-20)])
        expect(await found(part)).toEqual([id]);
    expect(await found("web%1:77")).toEqual([instance]);
    for (const name of ["web%1", "web", run.slice(-5), "abcdef", run.slice(9, 20)])
      expect(await found(name)).toEqual(name === "web%1" ? [instance] : []);
  });

  test("every verb keeps its entry if it changed something, and none if it did not", async ({
    scene,
  }) => {
    const { store } = scene;
    const [first = "", second = ""] = await scene.enqueued(2);
    const id = (name: string) => ({ id: name });
    const cancel = (name: string) =>
      store.runs.cancel({ ...id(name), random: 0, audit: entry("cancel", "run", name) });
    const retry = (name: string) =>
      store.runs.retry({ ...id(name), audit: entry("retry", "run", name) });
    const remove = (name: string) =>
      store.runs.remove({ ...id(name), audit: entry("delete", "run", name) });
    await cancel(first);
    await cancel(first);
    await cancel(scene.id());
    await retry(second);
    await retry(first);
    await remove(second);
    await cancel(first);
    await remove(first);
    await store.pause.end({ audit: entry("resume", "everything", null) });
    const pause = entry("pause", "everything", null);
    for (const note of [null, null, "moving", "moving", null])
      await store.pause.begin({ by: "ada", note, audit: pause });
    const queue = (isPaused: boolean, note?: string) =>
      store.queues.pause({
        queue: "q",
        isPaused,
        ...(note === undefined ? {} : { note }),
        audit: entry(isPaused ? "pause" : "resume", "queue", "q"),
      });
    await queue(false);
    expect(await store.queues.list()).not.toContainEqual(expect.objectContaining({ name: "q" }));
    for (const note of [undefined, undefined, "full", "full", undefined]) await queue(true, note);
    await queue(false);
    await queue(false);
    const rules = { rules: [] } as never;
    await store.calendars.put({ name: "c", rules, by: null, audit: entry("set", "calendar", "c") });
    for (let times = 0; times < 2; times += 1)
      await store.calendars.remove({ name: "c", audit: entry("delete", "calendar", "c") });
    await store.locks.revoke({ name: "l", note: null, audit: entry("release", "lock", "l") });
    const quiet = { isQuiet: true, by: null, note: null };
    for (const name of ["first", "nobody"])
      await store.instances.setQuiet({
        ...quiet,
        id: name,
        audit: entry("quiet", "instance", name),
      });
    expect((await lines(scene)).reverse()).toEqual([
      `cancel run ${first}`,
      `retry run ${first}`,
      `cancel run ${first}`,
      `delete run ${first}`,
      ...["pause everything null", "pause everything null"],
      ...["pause queue q", "pause queue q", "resume queue q"],
      "set calendar c",
      "delete calendar c",
      "quiet instance first",
    ]);
  });

  test("a change of a schedule that is not applied leaves no entry", async ({ scene }) => {
    const { schedules } = scene;
    await schedules.knowJob();
    const made = { name: "s", edit: schedules.edit(), progress: schedules.progress() };
    for (let times = 0; times < 2; times += 1)
      await scene.store.schedules.create({ ...made, audit: entry("create", "schedule", "s") });
    const state = await schedules.state("s");
    const standing = { ...UPRIGHT, pausedAt: scene.now };
    const pause = changeOf(state, { standing, audit: entry("pause", "schedule", "s") });
    expect(await schedules.write([pause])).toEqual([state.id]);
    expect(await schedules.write([pause])).toEqual([]);
    expect(await lines(scene)).toEqual(["pause schedule s", "create schedule s"]);
  });

  test("a released lock leaves one", async ({ scene }) => {
    const { store } = scene;
    const asked = { name: "l", token: crypto.randomUUID(), holder: "x", leaseMs: 60_000 };
    await store.locks.acquire({ ...asked, waiting: null } as never);
    await store.locks.revoke({ name: "l", note: "stuck", audit: entry("release", "lock", "l") });
    expect(await lines(scene)).toEqual(["release lock l"]);
  });

  test("entries are read newest first, by page, noun, name, actor and start time", async ({
    scene,
  }) => {
    const { store } = scene;
    for (const [at, noun] of ["run", "queue", "run", "queue"].entries()) {
      scene.advance(MINUTE_MS);
      const who = at < 2 ? "ada" : "bob";
      await store.audit.add({ ...entry("pause", noun as "run", `n${at}`), who });
    }
    const names = async (filter: object) =>
      (await store.audit.list({ limit: 10, ...filter })).map(({ name }) => name);
    const page = await store.audit.list({ limit: 2 });
    expect(page.map(({ name }) => name)).toEqual(["n3", "n2"]);
    expect(await names({ before: page[1]?.id })).toEqual(["n1", "n0"]);
    expect(await names({ noun: "queue" })).toEqual(["n3", "n1"]);
    expect(await names({ name: "n1" })).toEqual(["n1"]);
    expect(await names({ who: "bob", noun: "run" })).toEqual(["n2"]);
    expect(await names({ since: { agoMs: MINUTE_MS } })).toEqual(["n3", "n2"]);
    expect(await names({ since: { at: scene.now } })).toEqual(["n3"]);
    await store.retention.prune({ keepMs: 2 * MINUTE_MS - 1, keepTicksMs: MINUTE_MS, limit: 10 });
    expect(await names({})).toEqual(["n3", "n2"]);
  });

  test("the poll of a quiet instance returns that it is quiet, and lists show the actor and the reason", async ({
    scene,
  }) => {
    const { store } = scene;
    await scene.enqueued(1);
    const quiet = { id: "first", isQuiet: true, by: "ada", note: "its memory" };
    expect(await store.instances.setQuiet(quiet)).toBe(true);
    scene.advance(1_000);
    await store.instances.setQuiet({ ...quiet, by: "bob", note: null });
    expect(await scene.poll()).toMatchObject({
      pause: { kind: "quiet", since: scene.now - 1_000, note: "its memory" },
      hasReady: false,
    });
    const other = await scene.announce("second");
    expect(await scene.poll({ holder: other })).toMatchObject({ pause: null, hasReady: true });
    const listed = await store.instances.list({ limit: 10 });
    expect(listed.find(({ id }) => id === "first")).toMatchObject({
      quietAt: scene.now - 1_000,
      quietBy: "ada",
      quietNote: "its memory",
    });
    await store.instances.setQuiet({ id: "first", isQuiet: false, by: null, note: null });
    expect(await scene.poll()).toMatchObject({ pause: null, hasReady: true });
  });
}
