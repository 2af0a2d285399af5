// A rolling deploy with real processes: two versions of the code on one database, the old one crashing
// and coming back after the new one, and others who share the database. Nothing flaps or vanishes.

import { expect } from "vitest";
import { until } from "../support/until.js";
import { allRuns, allTicks, onBothDatabases } from "./worker-processes.js";

const BEAT = { every: "1s", overlap: "allow" } as const;
const OLD = { nightly: { cron: "0 3 * * *" }, beat: BEAT, retired: { cron: "0 5 * * *" } };
const NEW = { nightly: { cron: "30 4 * * *" }, beat: BEAT, fresh: { cron: "0 6 * * *" } };

type Release = { readonly HOLDFAST_RELEASE?: string };

onBothDatabases((test) => {
  test.for<[string, Release, Release]>([
    ["with releases", { HOLDFAST_RELEASE: "9" }, { HOLDFAST_RELEASE: "10" }],
    ["without releases", {}, {}],
  ])(
    "during a rolling deploy %s the newer definition stays",
    async ([, before, after], { processes }) => {
      const app = { HOLDFAST_APP: "shop" };
      const old = { declares: OLD, env: { ...app, ...before } };
      const next = { declares: NEW, env: { ...app, ...after } };
      const observer = processes.observer();

      const [first, second] = await Promise.all([
        processes.start("old-1", old),
        processes.start("old-2", old),
      ]);
      const created = (schedule: string) => ({ schedule, change: "created" });
      expect(sorted(processes.heard("schedule.declared"))).toMatchObject([
        created("beat"),
        created("nightly"),
        created("retired"),
      ]);

      const third = await processes.start("new-1", next);
      expect(sorted(third.heard("schedule.declared"))).toMatchObject([
        created("fresh"),
        { schedule: "nightly", change: "edited" },
      ]);

      first.signal("SIGKILL");
      await first.exit;
      const again = await processes.start("old-1-again", old);
      expect(again.heard("schedule.declared")).toEqual([]);
      expect(again.heard("schedule.refused")).toMatchObject([{ schedule: "nightly" }]);

      expect(await second.stops()).toBe(0);
      const fourth = await processes.start("new-2", next);
      const quiet = { declares: { nightly: { cron: "0 0 1 1 *" } } };
      const worker = await processes.start("worker-only", { ...quiet, env: app, scheduler: false });
      const other = await processes.start("other-app", { ...quiet, env: { HOLDFAST_APP: "mail" } });
      for (const each of [fourth, worker, other])
        expect(each.heard("schedule.declared")).toEqual([]);
      expect(other.heard("schedule.refused")).toMatchObject([{ schedule: "nightly" }]);

      await until("five beats are in the ledger", async () => {
        return (await observer.schedules.ticks("beat")).ticks.length >= 5;
      });
      const alive = processes.workers.filter(({ hasExited }) => !hasExited);
      const exits = await Promise.all(alive.map((each) => each.stops()));
      expect(exits).toEqual(alive.map(() => 0));

      const { schedules } = await observer.schedules.list();
      expect(schedules).toMatchObject([
        { name: "beat", status: "active", version: 1 },
        { name: "fresh", status: "active", version: 1, cron: "0 6 * * *" },
        { name: "nightly", status: "active", version: 2, cron: "30 4 * * *", app: "shop" },
        { name: "retired", status: "active", version: 1, cron: "0 5 * * *" },
      ]);
      expect(processes.heard("schedule.vanished")).toEqual([]);

      // Through all of that the schedule of both versions kept its rhythm.
      const ticks = await allTicks(observer);
      const firstAt = Number(ticks[0]?.at);
      expect(ticks).toMatchObject(
        ticks.map((_, number) => ({
          schedule: "beat",
          at: new Date(firstAt + number * 1_000),
          outcome: "fired",
          count: 1,
        })),
      );
      const runs = await allRuns(observer);
      expect(runs.map(({ id }) => id).sort()).toEqual(ticks.map(({ runId }) => runId).sort());
    },
  );
});

function sorted<T extends { readonly [field: string]: unknown }>(lines: readonly T[]): T[] {
  return lines.toSorted((one, other) => (String(one.schedule) < String(other.schedule) ? -1 : 1));
}
