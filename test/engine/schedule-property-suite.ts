// The ledger is whole: whatever happens to instances, database and schedule, between two edits the
// ticks that the definition enumerates are those in the ledger, each once. Seeded; the seed of a
// failure is in its message.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { ScheduleDefinition } from "../../src/schedules/rules/schedule.js";
import { makeWhen } from "../../src/schedules/rules/when.js";
import type { ScheduleVersion } from "../../src/store/schedules/schedules.js";
import type { TickRecord } from "../../src/store/schedules/ticks.js";
import {
  HOUR,
  MINUTE,
  runRecords,
  SECOND,
  type Student,
  student,
  tickRecords,
} from "./schedule-fixtures.js";
import { type EnginePlace, World } from "./world.js";

const SEED = 20_260_115;
const RUNS = 25;

const rhythm = fc.oneof(
  fc.record({
    cron: fc.constantFrom(
      "* * * * *",
      "*/7 * * * *",
      "0 * * * *",
      "15,45 8-20 * * *",
      "*/20 * * * * *",
      "30 2 * * *",
    ),
    timezone: fc.constantFrom("UTC", "Europe/Paris", "Asia/Kathmandu"),
  }),
  fc.record({ every: fc.constantFrom("40s", "90s", "7m", "1h") }),
);
const policy = fc.record(
  {
    missed: fc.constantFrom("skip", "latest", "all", { within: "5m" }, { run: "all", limit: 3 }, {
      run: "all",
      within: "10m",
    } as const),
    overlap: fc.constantFrom("skip", "queue", "allow", "replace"),
    afterFailure: fc.constantFrom("3m", "1m..10m"),
    grace: fc.constantFrom("5s", "2m"),
  },
  { requiredKeys: [] },
);
const rules = fc.tuple(rhythm, policy).map(([when, what]) => ({ ...when, ...what }) as object);
const ranges = fc.record({ every: fc.constantFrom("1m..3m", "30s..30s", "10m..20m") });

const minutes = fc.integer({ min: 1, max: 40 });
const eventOf = (edits: fc.Arbitrary<object>) =>
  fc.oneof(
    fc.record({ kind: fc.constant("wait" as const), minutes }),
    fc.record({ kind: fc.constant("outage" as const), minutes }),
    fc.record({ kind: fc.constantFrom("kill" as const, "stop" as const), minutes }),
    fc.record({
      kind: fc.constant("nobody" as const),
      minutes: fc.integer({ min: 1, max: 3_000 }),
    }),
    fc.record({ kind: fc.constant("jump" as const), minutes }),
    fc.record({ kind: fc.constant("lose" as const), fault: fc.constantFrom("before", "after") }),
    fc.record({ kind: fc.constantFrom("pause" as const, "resume" as const, "trigger" as const) }),
    fc.record({ kind: fc.constant("edit" as const), rules: edits }),
    fc.record({ kind: fc.constant("recreate" as const), rules: edits }),
  );
type Event = { readonly kind: string; readonly minutes?: number; fault?: string; rules?: object };

/** Some members, all that happens to them, and the schedule that outlives it. */
class Story {
  readonly #world: World;
  readonly members: Student[] = [];
  #ranCount = 0;

  constructor(world: World) {
    this.#world = world;
  }

  async join(): Promise<void> {
    const member: Student = student(this.#world, {
      options: { poll: "20s" },
      run: async () => {
        this.#ranCount += 1;
        const number = this.#ranCount;
        if (number % 3 === 0) await member.clock.sleep((number % 7) * 30_000);
        if (number % 5 === 0) throw new Error("no");
      },
    });
    this.members.push(member);
    await this.#world.clock.until(member.holdfast.start());
  }

  get #last(): Student {
    return this.members.at(-1) as Student;
  }

  async happen(event: Event): Promise<void> {
    const { clock } = this.#world;
    const { schedules } = this.#last.holdfast;
    const ms = (event.minutes ?? 0) * MINUTE;
    switch (event.kind) {
      case "wait":
        return clock.advance(Math.min(ms, 10 * MINUTE));
      case "outage":
        this.#last.faults.goDown();
        await clock.advance(ms);
        this.#last.faults.comeUp();
        return clock.advance(30 * SECOND);
      case "kill":
        this.#last.clock.pause();
        await clock.advance(ms);
        return this.join();
      case "stop":
        await clock.until(this.#last.holdfast.stop({ grace: 0 }), { withinMs: HOUR });
        await clock.advance(ms);
        return this.join();
      case "nobody":
        for (const member of this.members) member.clock.pause();
        await clock.advance(ms);
        return this.join();
      case "jump":
        this.#world.databaseAheadMs += ms;
        return clock.advance(30 * SECOND);
      case "lose":
        this.#last.faults.fail("schedules.write", event.fault as "before", { times: 2 });
        await clock.advance(5 * MINUTE);
        return this.#last.faults.comeUp();
      case "pause":
        return void (await clock.until(schedules.pause("s", "why")));
      case "resume":
        return void (await clock.until(schedules.resume("s")));
      case "trigger":
        return void (await clock.until(schedules.trigger("s")));
      case "recreate":
        await clock.until(schedules.delete("s"));
        await clock.advance(3 * MINUTE);
        break;
    }
    await clock.until(schedules.upsert("s", { job: "study", ...event.rules } as never));
  }

  /** Settles the ticks up to now. */
  async end(): Promise<void> {
    await this.join();
    await this.#world.clock.advance(2 * MINUTE);
    await this.#world.clock.until(this.#last.holdfast.schedules.pause("s", "the end"));
  }
}

async function tell<T>(
  makePlace: () => Promise<EnginePlace>,
  first: object,
  events: readonly Event[],
  check: (world: World, story: Story) => Promise<T>,
): Promise<T> {
  const world = new World(await makePlace());
  try {
    const story = new Story(world);
    await story.join();
    await story.happen({ kind: "edit", rules: first });
    for (const event of events) await story.happen(event);
    await story.end();
    return await check(world, story);
  } finally {
    await world.end();
  }
}

/** The ticks of one version of a definition while it stood. */
function enumerate(version: ScheduleVersion, untilMs: number): number[] {
  if (version.kind === "deleted") return [];
  const { when } = JSON.parse(version.definition) as ScheduleDefinition;
  const ticks: number[] = [];
  const { next } = makeWhen(when, version.anchorAt);
  for (let at = next(version.at); at !== null && at <= untilMs; at = next(at)) ticks.push(at);
  return ticks;
}

/** Every row covers exactly the next ticks of the list, and the last row its end. */
function expectWhole(rows: readonly TickRecord[], ticks: readonly number[]): void {
  let reached = 0;
  for (const { firstAt, lastAt, count } of rows) {
    expect([firstAt, lastAt]).toEqual([ticks[reached], ticks[reached + count - 1]]);
    reached += count;
  }
  expect(reached).toBe(ticks.length);
}

async function checkLedger(world: World): Promise<void> {
  const endedAt = world.now();
  const store = await world.store();
  const versions = await store.schedules.versions({ name: "s" });
  const rows = await tickRecords(world);
  for (const [index, version] of versions.entries()) {
    const untilMs = versions[index + 1]?.at ?? endedAt;
    const own = rows.filter((row) => row.version === version.version);
    expectWhole(own, enumerate(version, untilMs));
  }
  const fired = rows.filter(({ run }) => run !== null);
  const runs = (await runRecords(world)).filter(({ mode }) => mode === "scheduled");
  expect(runs.map(({ id }) => id).sort()).toEqual(fired.map(({ run }) => run).sort());
  for (const { run, firstAt } of fired)
    expect(runs.find(({ id }) => id === run)?.nominalAt).toBe(firstAt);
  for (const [index, row] of rows.slice(1).entries())
    expect(row.recordedAt).toBeGreaterThanOrEqual(rows[index]?.recordedAt as number);
}

/** For drawn intervals: a tick is what was stored as the next one when it was judged. */
async function checkDrawn(world: World, { members }: Story): Promise<void> {
  const storedNext = new Map<number, number | null>();
  const judged = new Set<number>();
  for (const { faults } of members) {
    for (const verb of ["schedules.due", "schedules.states"] as const)
      for (const { answer } of faults.of(verb))
        for (const { revision, nextAt } of answer?.schedules ?? [])
          storedNext.set(revision, nextAt);
    for (const { params, answer } of faults.of("schedules.write")) {
      for (const { id, revision, ticks } of params.changes) {
        if (!answer?.includes(id) || ticks.length === 0) continue;
        expect(ticks.map(({ firstAt }) => firstAt)).toEqual([storedNext.get(revision)]);
        judged.add(ticks[0]?.firstAt as number);
      }
    }
  }
  const rows = await tickRecords(world);
  expect(new Set(rows.map(({ firstAt }) => firstAt))).toEqual(judged);
  expect(rows).toHaveLength(judged.size);
}

export function schedulePropertySuite(makePlace: () => Promise<EnginePlace>): void {
  const settings = { seed: SEED, numRuns: RUNS, endOnFailure: true };

  test("between two edits the ledger holds the ticks of the definition, each once", async () => {
    const events = fc.array(eventOf(rules), { minLength: 4, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(rules, events, (first, story) =>
        tell(makePlace, first, story as Event[], checkLedger),
      ),
      settings,
    );
  });

  test("each tick of a drawn interval is the next one that was stored before it", async () => {
    const events = fc.array(eventOf(ranges), { minLength: 4, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(ranges, events, (first, story) =>
        tell(makePlace, first, story as Event[], checkDrawn),
      ),
      { ...settings, numRuns: 8 },
    );
  });
}
