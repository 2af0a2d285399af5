// Schedules declared in code, and how the database is brought up to them. Only rows of the same app
// that came from code are touched; an older definition never overwrites a newer one, so that during a
// rolling deploy nothing flaps. What vanished from the code of all live instances is paused.

import { createHash } from "node:crypto";
import { canonicalJson } from "../shared/json.js";
import type { ScheduleChange, ScheduleState } from "../store/schedule-store.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import { progressOf } from "./advance.js";
import type { CalendarRules } from "./calendars/calendar.js";
import {
  type ChangeAuthor,
  pauseDecision,
  resumeDecision,
  upsertDecision,
  VANISHED_BY,
  type Wanted,
} from "./edit.js";
import { compareReleases, isNewerDefinition } from "./rules/release.js";
import { readSchedule, type ScheduleOptions } from "./rules/schedule.js";
import type { Read, ScheduleUpdater } from "./updater.js";

/** Live instances come first; no fleet is larger. */
const INSTANCES_MAX = 1_000;

export type Declaration = {
  readonly name: string;
  readonly job: string;
  readonly options: ScheduleOptions;
  /** JSON. */
  readonly input: string;
};

export type DeclaredParams = {
  readonly store: Store;
  readonly updater: ScheduleUpdater;
  readonly app: string | null;
  readonly release: string | null;
  readonly author: ChangeAuthor;
};

export type Verdict =
  | "created"
  | "edited"
  | "unchanged"
  /** A newer definition is in force; `apply` would put this one in its place. */
  | "older"
  /** Another app, or a call, made a schedule of this name. */
  | "foreign";

/** What `apply` would do about one schedule. */
export type PlannedChange = {
  readonly schedule: string;
  readonly change: Verdict | "vanished";
  /** Upcoming ticks now and afterwards; equal where nothing moves. */
  readonly ticksBefore: readonly Date[];
  readonly ticksAfter: readonly Date[];
};

/** Brings one schedule up to its declaration; forced, also over a newer one. */
export async function reconcile(
  declaration: Declaration,
  params: DeclaredParams & {
    readonly calendars: ReadonlyMap<string, CalendarRules>;
    readonly isForced: boolean;
  },
): Promise<Verdict> {
  const { store, updater, author, isForced } = params;
  const { name } = declaration;
  return updater.change<Verdict>(store, name, async (read) => {
    const { state } = read;
    const wanted = wantedOf(declaration, { ...params, now: state ? null : read.now });
    const verdict = await judge(read, wanted, params);
    // A newer release has dropped it: an older process that is there for a moment does not bring it back.
    const isDropped = state !== null && state.deletedAt === null && isVanished(state);
    if (isDropped && !isForced && verdict !== "foreign" && (await isBehind(params)))
      return { answer: "older" };
    if (verdict === "foreign") return { answer: verdict };
    if (verdict === "older" && !isForced) return { answer: verdict };
    if (!state || state.deletedAt !== null || !isVanished(state)) {
      return verdict === "unchanged" && state
        ? { answer: verdict, ...releaseRaised(state, params.release) }
        : upsertDecision(
            read,
            { ...wanted, release: newestRelease(state, params.release) },
            author,
          );
    }
    // It is declared again: it goes on, and then becomes what it is to be.
    const resumed = resumeDecision(read, { name, author });
    if (verdict !== "unchanged" && "change" in resumed && resumed.change)
      return { first: resumed.change };
    return "first" in resumed ? resumed : { ...resumed, answer: "edited" };
  });
}

/** Whether nothing is to be done about a declaration, as the schedule was a moment ago. */
export function isUpToDate(
  declaration: Declaration,
  state: ScheduleState | undefined,
  params: Parameters<typeof reconcile>[1],
): boolean {
  if (!state || state.deletedAt !== null || params.isForced) return false;
  const isOurs = state.source === "code" && state.app === params.app;
  if (!isOurs || isVanished(state)) return false;
  if (newestRelease(state, params.release) !== state.release) return false;
  return wantedOf(declaration, { ...params, now: null }).codeHash === state.codeHash;
}

/** The newest release that ever declared it: after a rollback the newer one has lost, not won. */
function newestRelease(state: ScheduleState | null, release: string | null): string | null {
  const stored = state?.source === "code" ? state.release : null;
  if (release === null || stored === null) return release ?? stored;
  const order = compareReleases(release, stored);
  return order === null || order >= 0 ? release : stored;
}

function releaseRaised(state: ScheduleState, release: string | null): { change?: ScheduleChange } {
  const newest = newestRelease(state, release);
  if (newest === null || newest === state.release) return {};
  const { id, revision } = state;
  const progress = progressOf(state);
  return { change: { id, revision, ticks: [], runs: [], progress, release: newest } };
}

/** Whether an instance of the same app and a newer release is live. Releases that do not compare are equal. */
async function isBehind({
  store,
  app,
  release,
}: Pick<DeclaredParams, "store" | "app" | "release">): Promise<boolean> {
  if (app === null || release === null) return false;
  const instances = await store.instances({ limit: INSTANCES_MAX });
  return instances.some(
    (each) => each.isLive && each.app === app && (compareReleases(each.release, release) ?? 0) > 0,
  );
}

export function isVanished({ pausedAt, pausedBy }: ScheduleState): boolean {
  return pausedAt !== null && pausedBy === VANISHED_BY;
}

/** What would become of a declaration. */
export async function judge(
  { state }: Read,
  wanted: Wanted,
  { store, app, release }: Pick<DeclaredParams, "store" | "app" | "release">,
): Promise<Verdict> {
  if (!state) return "created";
  // One that was declared without the name of an app belongs to the first app that declares it.
  const isOurs = state.source === "code" && (state.app === app || state.app === null);
  if (!isOurs) return state.deletedAt === null ? "foreign" : "created";
  if (state.deletedAt !== null) return "created";
  if (state.app !== app) return "edited";
  if (state.codeHash === wanted.codeHash) return "unchanged";
  const seen = await store.seenDefinitions({ schedule: state.id });
  const isNewer = isNewerDefinition({
    candidate: { hash: wanted.codeHash ?? "", release },
    current: { hash: state.codeHash ?? "", release: state.release },
    seen,
  });
  return isNewer ? "edited" : "older";
}

export function wantedOf(
  { name, job, options, input }: Declaration,
  params: Pick<DeclaredParams, "app" | "release"> & {
    readonly calendars: ReadonlyMap<string, CalendarRules>;
    /** Null: a time that has passed is accepted, as it was when it was declared first. */
    readonly now: number | null;
    readonly isForced: boolean;
  },
): Wanted {
  const { app, release, calendars, now, isForced } = params;
  const definition = readSchedule(options, {
    field: `schedule("${name}")`,
    nowMs: now,
    calendar: (each) => calendars.get(each),
    calendarNames: [...calendars.keys()],
  });
  // The rules of a calendar are not the schedule's own: editing them makes no other definition.
  const own = { ...definition, when: { ...definition.when, calendars: options.calendars ?? [] } };
  const codeHash = createHash("sha256")
    .update(canonicalJson(JSON.stringify([job, own, input])))
    .digest("base64url")
    .slice(0, 22);
  return { name, job, definition, input, app, source: "code", release, codeHash, isForced };
}

const WHY_REFUSED: { readonly [V in Verdict]?: string } = {
  older:
    "a newer definition or release is in force; `holdfast schedules apply` makes this one effective",
  foreign:
    "a schedule of this name was made by another app or by a call; processes that declare the same schedules need the same `app`",
};

export function tellVerdict(emit: Emit, schedule: string, verdict: Verdict): void {
  const why = WHY_REFUSED[verdict];
  if (why !== undefined) emit("schedule.refused", { schedule, why });
  else if (verdict !== "unchanged") emit("schedule.declared", { schedule, change: verdict });
}

type Vanished = { readonly name: string; readonly isPaused: boolean };

/** Schedules of this app that no live instance declares any more. */
export async function findVanished(params: {
  readonly store: Store;
  readonly app: string | null;
  readonly declared: ReadonlySet<string>;
}): Promise<readonly Vanished[]> {
  const { store, app, declared } = params;
  const { announced, stored } = await store.declaredNames({ app });
  const isKnown = new Set(announced);
  return stored.filter(({ name }) => !declared.has(name) && !isKnown.has(name));
}

/** Pauses what vanished; only an app that has a name may speak for its schedules. */
export async function pauseVanished(
  { store, updater, app, author }: DeclaredParams,
  vanished: readonly Vanished[],
): Promise<readonly string[]> {
  if (app === null) return [];
  const paused: string[] = [];
  for (const { name, isPaused } of vanished) {
    if (isPaused) continue;
    const note = `no live instance of the app "${app}" declares it any more`;
    const by = { ...author, by: VANISHED_BY };
    await updater.change(store, name, (read) =>
      isGone(read.state) ? { answer: undefined } : pauseDecision(read, { name, note, author: by }),
    );
    paused.push(name);
  }
  return paused;
}

/** What was done about a schedule that vanished, and how to undo it. */
export function vanishedWords(schedule: string, isPaused: boolean): string {
  const name = /^[\w.-]+$/.test(schedule) ? schedule : JSON.stringify(schedule);
  if (!isPaused)
    return `it goes on firing; to end that: holdfast schedules pause ${name}, or delete ${name}`;
  return (
    "it was paused and fires no more; it goes on by itself when the code declares it again. " +
    `To keep it without code: holdfast schedules delete ${name}, then holdfast schedules create ${name}`
  );
}

function isGone(state: ScheduleState | null): boolean {
  return !state || state.deletedAt !== null || state.pausedAt !== null;
}
