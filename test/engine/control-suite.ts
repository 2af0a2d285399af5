// One quiet instance, and who changed what.

import { expect } from "vitest";
import { ConfigurationError, InstanceNotFoundError } from "../../src/shared/errors.js";
import { watcher } from "./alert-fixtures.js";
import { HOUR, MINUTE, SECOND, student } from "./schedule-fixtures.js";
import { heard, type WorldTest } from "./world.js";

const MINUTELY = { job: "study", cron: "* * * * *" } as const;

export function controlSuite(test: WorldTest): void {
  test("a quiet instance claims and fires nothing, while another goes on", async ({ world }) => {
    const quiet = student(world);
    const other = student(world);
    await quiet.holdfast.start();
    await world.clock.until(quiet.holdfast.schedules.upsert("s", MINUTELY));
    await world.clock.until(
      quiet.holdfast.instances.quiet(quiet.holdfast.instanceId, "its memory"),
    );
    await world.clock.advance(3 * SECOND);
    await world.clock.until(quiet.study.enqueue({}));
    await world.clock.advance(2 * MINUTE);
    expect(quiet.ran).toEqual([]);
    expect(heard(quiet, "instance.halted")).toMatchObject([{ why: "quiet", note: "its memory" }]);
    await other.holdfast.start();
    await world.clock.advance(MINUTE);
    expect(quiet.ran).toEqual([]);
    expect(other.ran).toContain("enqueued -");
    const { instances } = await world.clock.until(other.holdfast.instances.list());
    const states = instances.map(({ quietNote, quietBy }) => [quietNote, quietBy]);
    expect(states).toContainEqual(["its memory", quiet.holdfast.instanceId]);
    await world.clock.until(other.holdfast.stop({ grace: 0 }));
    await world.clock.until(quiet.holdfast.instances.wake(quiet.holdfast.instanceId));
    await world.clock.advance(MINUTE);
    expect(quiet.ran.length).toBeGreaterThan(0);
    expect(heard(quiet, "instance.resumed")).toHaveLength(1);
  });

  test("a remote worker that is made quiet gets nothing until it is woken", async ({ world }) => {
    const { holdfast, study } = student(world);
    await study.enqueue({});
    const claim = { instance: "elsewhere", jobs: ["study"], limit: 1 };
    await world.clock.until(holdfast.remote.heartbeat({ instance: "elsewhere", runs: [] }));
    await holdfast.instances.quiet("elsewhere");
    expect(await world.clock.until(holdfast.remote.claim(claim))).toEqual([]);
    await holdfast.instances.wake("elsewhere");
    expect(await world.clock.until(holdfast.remote.claim(claim))).toHaveLength(1);
    await expect(holdfast.instances.quiet("nobody")).rejects.toThrow(InstanceNotFoundError);
  });

  test("an instance is reached by the parts of its id that lists show; candidates are named where several have them", async ({
    world,
  }) => {
    const { holdfast } = student(world);
    const names = ["web:4711:0199c1f2-aaaa", "web:4711:0199c1f2-bbbb", "web:47110:0199c1f3-cccc"];
    for (const instance of names)
      await world.clock.until(holdfast.remote.heartbeat({ instance, runs: [] }));
    const quiet = async () => {
      const { instances } = await holdfast.instances.list();
      return instances.flatMap(({ id, quietAt }) => (quietAt === null ? [] : [id]));
    };
    for (const part of ["web:4711:aaaa", "web:4711:0199c1f2-a", "9c1f2-aaaa"]) {
      await holdfast.instances.quiet(part);
      expect(await quiet()).toEqual([names[0]]);
      await holdfast.instances.wake(part);
      expect(await quiet()).toEqual([]);
    }
    // The whole process id goes before ids that only begin with it.
    const several = { code: "INSTANCE_AMBIGUOUS", candidates: names.slice(0, 2).reverse() };
    await expect(holdfast.instances.quiet("web:4711")).rejects.toMatchObject(several);
    await holdfast.instances.quiet("web:47110");
    expect(await quiet()).toEqual([names[2]]);
    await expect(holdfast.instances.quiet("-cccc")).rejects.toThrow(InstanceNotFoundError);
    const { entries } = await holdfast.audit.list({ noun: "instance" });
    expect(entries[0]).toMatchObject({ verb: "quiet", name: names[2] });
  });

  test("every change leaves an entry with its author, subject and way; work itself leaves none", async ({
    world,
  }) => {
    const { holdfast, study } = student(world);
    const ada = holdfast.as({ who: "ada", via: "http", address: "10.0.0.7", requestId: "r1" });
    await ada.schedules.upsert("s", MINUTELY);
    await ada.schedules.upsert("s", MINUTELY);
    await ada.schedules.upsert("s", { ...MINUTELY, cron: "0 2 * * *", overlap: "queue" });
    await ada.schedules.pause("s", "why");
    await ada.schedules.resume("s", { by: "bob" });
    const triggered = await ada.schedules.trigger("s");
    await ada.runs.cancel(String(triggered.runId));
    await ada.runs.retry(String(triggered.runId));
    const from = new Date(world.now() - 86_400_000);
    await ada.schedules.backfill("s", { from, to: new Date(world.now()) });
    await ada.schedules.cancelBackfill("s");
    await ada.queues.pause("mail", "relay");
    await ada.calendars.upsert("holidays", { dates: ["2026-12-25"] });
    await ada.calendars.delete("holidays");
    await ada.pause({ note: "all" });
    await ada.resume();
    await ada.schedules.delete("s");
    const { id } = await study.enqueue({});
    await holdfast.runs.cancel(id);
    const { entries } = await holdfast.audit.list({ limit: 100 });
    const told = entries.toReversed().map(({ who, verb, noun }) => `${who} ${verb} ${noun}`);
    expect(told).toEqual([
      "ada create schedule",
      "ada edit schedule",
      "ada pause schedule",
      "bob resume schedule",
      "ada trigger schedule",
      "ada cancel run",
      "ada retry run",
      "ada backfill schedule",
      "ada cancel_backfill schedule",
      "ada pause queue",
      "ada set calendar",
      "ada delete calendar",
      "ada pause everything",
      "ada resume everything",
      "ada delete schedule",
      `${holdfast.instanceId} cancel run`,
    ]);
    const edit = entries.find(({ verb }) => verb === "edit");
    expect(edit).toMatchObject({ via: "http", address: "10.0.0.7", requestId: "r1", name: "s" });
    expect(edit?.change).toMatch(/^every minute, UTC → at 02:00 .*; overlap changed$/);
    expect(entries.at(-3)).toMatchObject({ verb: "pause", note: "why" });
    const page = await holdfast.audit.list({ limit: 2, noun: "run" });
    expect(page.entries).toHaveLength(2);
    const next = await holdfast.audit.list({ noun: "run", cursor: String(page.nextCursor) });
    expect(next.entries).toHaveLength(1);
    expect((await holdfast.audit.list({ who: "bob" })).entries).toHaveLength(1);
  });

  test("actions on alerts, a cleanup and a recovery leave entries too, if anything was changed", async ({
    world,
  }) => {
    const stuck = student(world, { attempts: 2, run: () => new Promise(() => undefined) });
    await stuck.holdfast.start({ scheduler: false });
    await stuck.holdfast.schedules.upsert("s", MINUTELY);
    const { holdfast } = await watcher(world);
    const ada = holdfast.as({ who: "ada", via: "http" });
    await world.clock.advance(30 * MINUTE);
    const [alert] = (await holdfast.alerts.list({ kind: "silent" })).alerts;
    await ada.alerts.mute(String(alert?.id), "2h");
    await ada.alerts.acknowledge(String(alert?.id), { by: "bob" });
    await stuck.study.enqueue({});
    await world.clock.advance(2 * MINUTE);
    await ada.cleanup();
    await ada.cleanup({ timeout: "1m" });
    await holdfast.recover();
    await holdfast.recover({ apply: true });
    const { entries } = await holdfast.audit.list();
    const told = entries.toReversed().map(({ who, verb, noun, change }) => ({
      text: `${who} ${verb} ${noun}`,
      change,
    }));
    expect(told.slice(1)).toEqual([
      { text: "ada mute alert", change: "for 2 hours" },
      { text: "bob acknowledge alert", change: null },
      { text: "ada cleanup everything", change: "1 reclaimed, 0 of them failed" },
      {
        text: `${holdfast.instanceId} recover everything`,
        change: "fences raised by 10000000000",
      },
    ]);
  });

  test("a requested removal of history leaves an entry, if anything was removed", async ({
    world,
  }) => {
    const { holdfast, study } = student(world, {});
    await study.enqueue({});
    await world.clock.until(holdfast.tick());
    await world.clock.until(holdfast.prune());
    expect((await holdfast.audit.list()).entries).toEqual([]);
    await world.clock.advance(40 * 24 * HOUR);
    const { removed } = await world.clock.until(holdfast.prune());
    expect(removed).toBeGreaterThan(0);
    await world.clock.until(holdfast.prune());
    expect((await holdfast.audit.list()).entries).toMatchObject([
      { verb: "prune", noun: "everything", change: `${removed} rows and days removed` },
    ]);
  });

  test("changes by a declaration are recorded under the name of the code", async ({ world }) => {
    const { holdfast } = student(world, { options: { app: "shop" } });
    holdfast.schedule("nightly", "study", { cron: "0 2 * * *" });
    await world.clock.until(holdfast.schedules.apply());
    expect((await holdfast.audit.list()).entries).toMatchObject([
      { who: "code of shop", verb: "create", noun: "schedule", name: "nightly" },
    ]);
  });

  test("wrong filters and nameless actors are refused with their fields", async ({ world }) => {
    const { holdfast } = student(world);
    await expect(holdfast.audit.list({ noun: "task" } as never)).rejects.toThrow("noun");
    await expect(holdfast.audit.list({ cursor: "x" })).rejects.toThrow("cursor");
    await expect(holdfast.audit.list({ since: "soon" })).rejects.toThrow("since");
    expect(() => holdfast.as({ who: "" })).toThrow(ConfigurationError);
    expect(() => holdfast.as({ who: "ada", via: "fax" as never })).toThrow("as().via");
  });
}
