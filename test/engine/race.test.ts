// Races inside one process: three instances on one database, whose statements and timers happen in an order that
// fast-check chooses. No instance is started; the passes are called by hand, all at once.

import { DatabaseSync } from "@photostructure/sqlite";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import { ScheduleCache } from "../../src/schedules/schedule-cache.js";
import { tickOnce } from "../../src/schedules/ticker.js";
import type { Clock } from "../../src/shared/ports.js";
import type { SqliteHandle } from "../../src/store/sqlite/connection/handle.js";
import { SqliteStore } from "../../src/store/sqlite/store.js";
import type { Store } from "../../src/store/store.js";
import { Meters } from "../../src/telemetry/meters.js";
import { SeededRandom, seededIds } from "../../src/testing/virtual-clock.js";

const START = Date.UTC(2026, 0, 15, 12);
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const NAME = "s";

type Scheduler = fc.Scheduler;
type Act = (member: Member) => Promise<unknown>;
type Member = { readonly holdfast: Holdfast; readonly store: Store; tick(): Promise<unknown> };

/** Three instances; every statement and every timer of theirs waits for its turn. */
class Room {
  readonly members: readonly Member[];
  readonly #handle = new DatabaseSync(":memory:");
  readonly #random = new SeededRandom(7);
  now = START;

  constructor(s: Scheduler) {
    const clock: Clock = {
      wallMs: () => this.now,
      monotonicMs: () => this.now,
      timer: (_, callback) => {
        let isSet = true;
        void s.schedule(Promise.resolve()).then(() => isSet && callback());
        const cancel = () => {
          isSet = false;
        };
        return { cancel };
      },
      soon: (callback) => void s.schedule(Promise.resolve()).then(callback),
    };
    const ports = { clock, random: this.#random, ids: seededIds(clock, this.#random) };
    this.members = [1, 2, 3].map(() => {
      const store = inTurn(this.#store(clock), s);
      const holdfast = new Holdfast(
        { database: "sqlite::memory:", logger: SILENT },
        { ports, store: () => store },
      );
      holdfast.job("study", { run: () => undefined });
      const ticker = {
        store,
        ports,
        holder: null,
        cache: new ScheduleCache(),
        refusals: new Map(),
        emit: () => undefined,
        listens: () => false,
        meter: new Meters(),
        tracing: null,
      };
      return { holdfast, store, tick: () => tickOnce(ticker, { lastPolledAt: null }) };
    });
  }

  #store(clock: Clock): Store {
    return new SqliteStore({
      source: { handle: this.#handle as unknown as SqliteHandle },
      clock,
      random: this.#random,
      synchronous: "FULL",
      migrate: "auto",
      mayCreate: true,
      now: () => this.now,
    });
  }

  rows(text: string): Record<string, unknown>[] {
    return this.#handle.prepare(text).all() as Record<string, unknown>[];
  }

  close(): void {
    this.#handle.close();
  }
}

/** The first caller does not get the first response. */
function inTurn(store: Store, s: Scheduler): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function" || name === "onWake" || name === "wake") return member;
      return async (...args: unknown[]) => {
        await s.schedule(Promise.resolve(), String(name));
        return Reflect.apply(member, target, args);
      };
    },
  });
}

const ACTS: Record<string, Act> = {
  tick: ({ tick }) => tick(),
  "trigger if due": ({ holdfast }) => holdfast.schedules.trigger(NAME, { ifDue: true }),
  trigger: ({ holdfast }) => holdfast.schedules.trigger(NAME),
  "the same delivery": ({ holdfast }) => holdfast.schedules.trigger(NAME, { deliveryId: "d" }),
  pause: ({ holdfast }) => holdfast.schedules.pause(NAME),
  resume: ({ holdfast }) => holdfast.schedules.resume(NAME),
  "edit its input": ({ holdfast }) =>
    holdfast.schedules.upsert(NAME, { job: "study", every: "10s", input: 1 }),
  "edit its rhythm": ({ holdfast }) =>
    holdfast.schedules.upsert(NAME, { job: "study", every: "7s" }),
};

const acts = fc.array(
  fc.record({ act: fc.constantFrom(...Object.keys(ACTS)), member: fc.nat(2) }),
  { minLength: 2, maxLength: 8 },
);

test("under concurrent changes of a schedule, a tick has one row and one run, and runs do not overlap", async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), acts, async (s, chosen) => {
      const room = new Room(s);
      const [first] = room.members as [Member, Member, Member];
      const made = first.holdfast.schedules.upsert(NAME, { job: "study", every: "10s" });
      await s.waitFor(made);
      await s.waitFor(Promise.all(room.members.map(({ holdfast }) => holdfast.schedules.list())));
      room.now += 10_000;
      const all = chosen.map(({ act, member }) =>
        (ACTS[act] as Act)(room.members[member] as Member),
      );
      await s.waitFor(Promise.all(all));
      const scheduled = room.rows("select nominal_at as at from holdfast_run where mode = 1");
      expect(new Set(scheduled.map(({ at }) => at)).size).toBe(scheduled.length);
      const fired = room.rows("select at, run from holdfast_tick where outcome = 0");
      expect(fired.map(({ at }) => at).sort()).toEqual(scheduled.map(({ at }) => at).sort());
      // Nobody executes here, so every run that could be claimed would run beside the others.
      expect(room.rows("select id from holdfast_ready").length).toBeLessThanOrEqual(1);
      const [schedule] = room.rows("select * from holdfast_schedule");
      const last = room.rows("select max(last_at) as at from holdfast_tick")[0]?.at;
      expect(Number(schedule?.cursor_at)).toBeGreaterThanOrEqual(Number(last ?? 0));
      const versions = room.rows("select version from holdfast_schedule_version");
      expect(versions.length).toBe(schedule?.version);
      expect(room.rows("select run from holdfast_delivery").length).toBeLessThanOrEqual(1);
      room.close();
    }),
    { numRuns: 150, seed: 20_260_115 },
  );
});
