// Fixtures for schedules of a scene: each call makes, reads, fires or changes one in a line. The test gives the
// values that a decision would write; values left out stay as they are.

import type { RunId } from "../../src/runs/rules/run.js";
import { oneTick, type TickEntry } from "../../src/schedules/rules/tick.js";
import type { JobAnnouncement } from "../../src/store/jobs.js";
import type {
  BackfillState,
  ScheduleChange,
  ScheduleEdit,
  ScheduleProgress,
  ScheduleRun,
  ScheduleStanding,
} from "../../src/store/schedules/changes.js";
import type { ScheduleState } from "../../src/store/schedules/state.js";
import type { TickRecord } from "../../src/store/schedules/ticks.js";
import type { Store } from "../../src/store/store.js";
import { POLICY } from "./policy.js";
import type { Scene } from "./scene.js";

export const MINUTE_MS = 60_000;
export const DEFINITION = '{"when":{"kind":"every","everyMs":600000},"overlap":"skip"}';

/** The values that runs of a schedule take from their job. */
export const STUDY: JobAnnouncement = {
  name: "study",
  queue: "steady",
  priority: 5,
  version: 2,
  policy: POLICY,
};

/** All that a new schedule can be told; the two parts share no member. */
export type ScheduleGiven = Partial<ScheduleEdit & ScheduleProgress>;
/** Parts of a change: progress that is not named stays as it was read. */
export type ChangeGiven = Partial<Omit<ScheduleChange, "id" | "progress">> & {
  readonly progress?: Partial<ScheduleProgress>;
};
type FireGiven = Partial<ScheduleProgress> & {
  readonly at?: number;
  readonly run?: Partial<ScheduleRun>;
};

const PROGRESS_MEMBERS = [
  "cursorAt",
  "nextAt",
  "isEnded",
  "holdUntil",
  "holdRun",
  "lastRun",
  "lastTickAt",
  "isGated",
  "isReplacing",
  "tzdata",
] as const satisfies readonly (keyof ScheduleProgress)[];

export class SceneSchedules {
  readonly #scene: Scene;
  #isJobKnown = false;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  edit(given: Partial<ScheduleEdit> = {}): ScheduleEdit {
    return {
      kind: "created",
      by: null,
      job: "study",
      definition: DEFINITION,
      input: '{"n":1}',
      anchorAt: this.#scene.now,
      range: null,
      afterFailure: null,
      priority: null,
      queue: null,
      tags: [],
      app: null,
      source: "api",
      release: null,
      codeHash: null,
      isForced: false,
      isDeleted: false,
      ...given,
    };
  }

  /** A tick in an hour, and nothing has happened yet. */
  progress(given: Partial<ScheduleProgress> = {}): ScheduleProgress {
    return {
      cursorAt: this.#scene.now,
      nextAt: this.#scene.now + 60 * MINUTE_MS,
      isEnded: false,
      holdUntil: null,
      holdRun: null,
      lastRun: null,
      lastTickAt: null,
      live: [],
      isGated: false,
      isReplacing: false,
      tzdata: null,
      ...given,
    };
  }

  /** The answer of `createSchedule`. */
  create(name: string, given: ScheduleGiven = {}): Promise<number | null> {
    const edit = picked(this.edit(), given);
    return this.#scene.store.schedules.create({
      name,
      edit,
      progress: picked(this.progress(), given),
    });
  }

  /** A new schedule whose job is known; answers how it stands. */
  async make(name: string, given: ScheduleGiven = {}): Promise<ScheduleState> {
    await this.knowJob();
    if ((await this.create(name, given)) === null) throw new Error(`${name} is taken.`);
    return this.state(name);
  }

  async knowJob(job: JobAnnouncement = STUDY): Promise<void> {
    if (this.#isJobKnown) return;
    this.#isJobKnown = true;
    await this.#scene.announce("announcer", this.#scene.store, { jobs: [job] });
  }

  async state(name: string, store = this.#scene.store): Promise<ScheduleState> {
    const { schedules } = await store.schedules.states({ names: [name] });
    const [state] = schedules;
    if (!state || schedules.length > 1) throw new Error(`There is no one schedule ${name}.`);
    return state;
  }

  /** The due schedules, by name. */
  async due(limit = 100): Promise<string[]> {
    const { schedules } = await this.#scene.store.schedules.due({ limit });
    return schedules.map(({ name }) => name);
  }

  /** All that a store tells about a schedule: equal before and after means that nothing changed. */
  async portrait(name: string): Promise<unknown> {
    const { store } = this.#scene;
    return [
      await this.state(name),
      await store.schedules.ticks({ schedule: name, limit: 100 }),
      await store.schedules.versions({ name }),
      await store.schedules.backfills({ name }),
      await store.runs.list({ schedule: name, limit: 100 }),
    ];
  }

  write(
    changes: readonly ScheduleChange[],
    store: Store = this.#scene.store,
  ): Promise<readonly number[]> {
    return store.schedules.write({ holder: this.#scene.holder, changes });
  }

  /** Changes a schedule as it is now; it must be applied. */
  async change(name: string, given: ChangeGiven): Promise<void> {
    const state = await this.state(name);
    const applied = await this.write([changeOf(state, given)]);
    if (applied.length !== 1) throw new Error(`The change of ${name} was not applied.`);
  }

  /** A tick that becomes a run: the newest fired one. */
  async fire(name: string, given: FireGiven = {}): Promise<RunId> {
    const { at = this.#scene.now, run, ...progress } = given;
    const id = run?.id ?? this.#scene.id();
    const state = await this.state(name);
    await this.change(name, {
      progress: {
        ...firedProgress(state, { at, id, isGated: run?.isGated === true }),
        ...progress,
      },
      ticks: [oneTick(at, "on_time", { run: id })],
      runs: [this.run({ id, nominalAt: at, ...run })],
    });
    return id;
  }

  /** A run that no tick made, as of a trigger. */
  async trigger(name: string, run: Partial<ScheduleRun> = {}): Promise<RunId> {
    const id = run.id ?? this.#scene.id();
    const { live, isGated } = await this.state(name);
    await this.change(name, {
      progress: { live: [...idsIn(live), id], isGated: isGated || run.isGated === true },
      runs: [this.run({ id, mode: "manual", ...run })],
    });
    return id;
  }

  run(given: Partial<ScheduleRun> = {}): ScheduleRun {
    return {
      id: this.#scene.id(),
      mode: "scheduled",
      nominalAt: null,
      isGated: false,
      input: null,
      ...given,
    };
  }

  /** Nothing is due any more until it is resumed. */
  async pause(name: string, given: Partial<ScheduleStanding> = {}): Promise<void> {
    const standing = { ...UPRIGHT, pausedAt: this.#scene.now, ...given };
    await this.change(name, { progress: { nextAt: null }, standing });
  }

  async remove(name: string): Promise<void> {
    const { job, input, definition, anchorAt } = await this.state(name);
    await this.change(name, {
      progress: { nextAt: null },
      edit: this.edit({ kind: "deleted", job, input, definition, anchorAt, isDeleted: true }),
    });
  }

  backfill(given: Partial<BackfillState> = {}): BackfillState {
    const { now } = this.#scene;
    return {
      id: crypto.randomUUID(),
      fromAt: now - 10 * MINUTE_MS,
      toAt: now,
      cursorAt: now - 10 * MINUTE_MS - 1,
      total: 11,
      made: 0,
      passed: 0,
      isAll: false,
      ...given,
    };
  }

  ticks(name: string): Promise<readonly TickRecord[]> {
    return this.#scene.store.schedules.ticks({ schedule: name, limit: 100 });
  }
}

/** Neither paused nor broken. */
export const UPRIGHT: ScheduleStanding = {
  pausedAt: null,
  pausedBy: null,
  pauseNote: null,
  brokenAt: null,
  brokenError: null,
};

export function progressOf(state: ScheduleState): ScheduleProgress {
  const members = PROGRESS_MEMBERS.map((member) => [member, state[member]]);
  return { ...Object.fromEntries(members), live: idsIn(state.live) } as ScheduleProgress;
}

/** A change at the revision that was read. */
export function changeOf(state: ScheduleState, given: ChangeGiven = {}): ScheduleChange {
  return {
    id: state.id,
    revision: state.revision,
    ticks: [],
    runs: [],
    ...given,
    progress: { ...progressOf(state), ...given.progress },
  };
}

export function firedProgress(
  state: ScheduleState,
  {
    at,
    id,
    isGated = false,
  }: { readonly at: number; readonly id: RunId; readonly isGated?: boolean },
): Partial<ScheduleProgress> {
  return {
    cursorAt: at,
    nextAt: at + 60 * MINUTE_MS,
    lastRun: id,
    lastTickAt: at,
    live: [...idsIn(state.live), id],
    isGated: state.isGated || isGated,
  };
}

/** A stretch of equal ticks, a minute apart. */
export function stretch(
  firstAt: number,
  count: number,
  reason: TickEntry["reason"] = "nobody",
): TickEntry {
  const lastAt = firstAt + (count - 1) * MINUTE_MS;
  return { firstAt, lastAt, count, reason, run: null, evidence: null };
}

function idsIn(live: ScheduleState["live"]): RunId[] {
  return live.map(({ id }) => id);
}

/** The whole, with those of its members that were given otherwise. */
function picked<T extends object>(whole: T, given: object): T {
  const own = Object.entries(given).filter(([member]) => member in whole);
  return { ...whole, ...Object.fromEntries(own) };
}
