// Decides about one schedule that code declares, for the reconciler. It changes only rows of the same app that came from
// code. An older definition never overwrites a newer one, so that nothing flaps during a rolling deploy. A schedule that no
// live instance declares is paused by the program that declared it last; a program that is not running keeps its schedules.

import { createHash } from "node:crypto";
import { canonicalJson } from "../shared/json.js";
import type { ScheduleChange } from "../store/schedules/changes.js";
import type { ScheduleState } from "../store/schedules/state.js";
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
import { readSchedule, type ScheduleOptions } from "./rules/schedule.js";
import type { Read, ScheduleUpdater } from "./updater.js";

/** Live instances come first in the list; no fleet is larger. */
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
  /** The file that this process was started with; null: unknown. */
  readonly program: string | null;
  readonly release: string | null;
  readonly author: ChangeAuthor;
};

export type Verdict =
  | "created"
  | "edited"
  | "unchanged"
  /** A newer definition is in force; `apply` would replace it. */
  | "older"
  /** Another app, or a call, made a schedule of this name. */
  | "foreign";

/** The change that `apply` would make to one schedule. */
export type PlannedChange = {
  readonly schedule: string;
  readonly change: Verdict | "vanished";
  /** Upcoming ticks before and after; equal if nothing moves. */
  readonly ticksBefore: readonly Date[];
  readonly ticksAfter: readonly Date[];
};

/** Applies one declaration; if forced, also over a newer definition. */
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
    // A newer release has dropped it: an older process that runs for a moment does not revive it.
    const isDropped = state !== null && state.deletedAt === null && isVanished(state);
    if (isDropped && !isForced && verdict !== "foreign" && (await isBehind(params)))
      return { result: "older" };
    if (verdict === "foreign") return { result: verdict };
    if (verdict === "older" && !isForced) return { result: verdict };
    if (!state || state.deletedAt !== null || !isVanished(state)) {
      return verdict === "unchanged" && state
        ? { result: verdict, ...releaseRaised(state, params.release) }
        : upsertDecision(
            read,
            { ...wanted, release: newestRelease(state, params.release) },
            author,
          );
    }
    // It is declared again: it resumes first, then takes its new definition.
    const resumed = resumeDecision(read, { name, author });
    if (verdict !== "unchanged" && "change" in resumed && resumed.change)
      return { first: resumed.change };
    return "first" in resumed ? resumed : { ...resumed, result: "edited" };
  });
}

/** Whether the declaration matches the schedule as it was read a moment ago. */
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

/** The newest release that ever declared it; a rollback does not lower it. */
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
  const instances = await store.instances.list({ limit: INSTANCES_MAX });
  return instances.some(
    (each) => each.isLive && each.app === app && (compareReleases(each.release, release) ?? 0) > 0,
  );
}

export function isVanished({ pausedAt, pausedBy }: ScheduleState): boolean {
  return pausedAt !== null && pausedBy === VANISHED_BY;
}

/** Decides what a declaration would do to the schedule. */
export async function judge(
  { state }: Read,
  wanted: Wanted,
  { store, app, release }: Pick<DeclaredParams, "store" | "app" | "release">,
): Promise<Verdict> {
  if (!state) return "created";
  // A schedule declared without an app name belongs to the first app that declares it.
  const isOurs = state.source === "code" && (state.app === app || state.app === null);
  if (!isOurs) return state.deletedAt === null ? "foreign" : "created";
  if (state.deletedAt !== null) return "created";
  if (state.app !== app) return "edited";
  if (state.codeHash === wanted.codeHash) return "unchanged";
  const seen = await store.schedules.seenDefinitions({ schedule: state.id });
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
    /** Null: a time that has passed is accepted, as it was in the future when it was first declared. */
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
  // A calendar's rules are not part of the schedule: editing them does not change its definition hash.
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

export function emitVerdict(emit: Emit, schedule: string, verdict: Verdict): void {
  const why = WHY_REFUSED[verdict];
  if (why !== undefined) emit("schedule.refused", { schedule, why });
  else if (verdict !== "unchanged") emit("schedule.declared", { schedule, change: verdict });
}

type Vanished = {
  readonly name: string;
  readonly isPaused: boolean;
  /** Another program declared it last and is not running; undefined: this program declared it, or that is unknown. */
  readonly otherProgram: string | undefined;
  /** This program declared it last, so its code has dropped it. */
  readonly isDropped: boolean;
};

/** Schedules of this app that no live instance declares any more. */
export async function findVanished(params: {
  readonly store: Store;
  readonly app: string | null;
  readonly program: string | null;
  readonly declared: ReadonlySet<string>;
}): Promise<readonly Vanished[]> {
  const { store, app, program, declared } = params;
  const { announced, stored } = await store.schedules.declaredNames({ app });
  const isKnown = new Set(announced);
  const vanished = stored.filter(({ name }) => !declared.has(name) && !isKnown.has(name));
  const active = vanished.filter(({ isPaused }) => !isPaused).map(({ name }) => name);
  const last =
    active.length > 0 ? await store.schedules.lastDeclaredBy({ app, names: active }) : new Map();
  return vanished.map(({ name, isPaused }) => {
    const by: string | null | undefined = last.get(name);
    const isDropped = last.has(name) && by === program;
    return { name, isPaused, isDropped, otherProgram: isDropped ? undefined : (by ?? undefined) };
  });
}

/**
 * Pauses schedules that vanished; only an app with a name does so. Unless a caller applies the declarations, a schedule
 * that another program declared last goes on: that program may only be stopped for a while.
 */
export async function pauseVanished(
  { store, updater, app, author }: DeclaredParams,
  vanished: readonly Vanished[],
  { isApplied }: { readonly isApplied: boolean },
): Promise<readonly string[]> {
  if (app === null) return [];
  const paused: string[] = [];
  for (const { name, isPaused, isDropped } of vanished) {
    if (isPaused || !(isDropped || isApplied)) continue;
    const note = `no live instance of the app "${app}" declares it any more`;
    const by = { ...author, by: VANISHED_BY };
    await updater.change(store, name, (read) =>
      isGone(read.state) ? { result: undefined } : pauseDecision(read, { name, note, author: by }),
    );
    paused.push(name);
  }
  return paused;
}

/** Says what was done about a vanished schedule, and how to undo it. */
export function vanishedWords({
  schedule,
  isPaused,
  otherProgram,
}: {
  readonly schedule: string;
  readonly isPaused: boolean;
  readonly otherProgram: string | undefined;
}): string {
  const name = /^[\w.-]+$/.test(schedule) ? schedule : JSON.stringify(schedule);
  if (isPaused) {
    return (
      "it was paused, and resumes when the code declares it again. " +
      `To keep it without code: holdfast schedules delete ${name}, then holdfast schedules create ${name}`
    );
  }
  const why =
    otherProgram === undefined
      ? "it keeps firing"
      : `it keeps firing, since another program (${otherProgram}) declared it last and is not running now`;
  return `${why}; to stop it: holdfast schedules pause ${name}, or delete ${name}`;
}

function isGone(state: ScheduleState | null): boolean {
  return !state || state.deletedAt !== null || state.pausedAt !== null;
}

// ── which of two definitions in code is newer: by release if both compare, else by which was first seen later ──

type Seen = { readonly hash: string; readonly firstSeenAt: number };
type Declared = { readonly hash: string; readonly release: string | null };

/** Whether the candidate may take the place of the current definition. */
export function isNewerDefinition(params: {
  readonly candidate: Declared;
  readonly current: Declared;
  readonly seen: readonly Seen[];
}): boolean {
  const { candidate, current, seen } = params;
  const order = compareReleases(candidate.release, current.release);
  if (order !== null && order !== 0) return order > 0;
  const seenAt = (hash: string) => seen.find((each) => each.hash === hash)?.firstSeenAt;
  const candidateAt = seenAt(candidate.hash);
  if (candidateAt === undefined) return true;
  return candidateAt > (seenAt(current.hash) ?? Number.NEGATIVE_INFINITY);
}

const NUMBER = /^\d{1,15}$/;
const SEMVER = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

/** Negative, zero or positive as numbers or as semantic versions; null where they do not compare. */
export function compareReleases(left: string | null, right: string | null): number | null {
  if (left === null || right === null) return null;
  if (NUMBER.test(left) && NUMBER.test(right)) return Number(left) - Number(right);
  const [, ...one] = SEMVER.exec(left) ?? [];
  const [, ...other] = SEMVER.exec(right) ?? [];
  if (one.length === 0 || other.length === 0) return null;
  for (const part of [0, 1, 2]) {
    const difference = Number(one[part]) - Number(other[part]);
    if (difference !== 0) return difference;
  }
  return comparePrereleases(one[3], other[3]);
}

/** A release is newer than its own prereleases; numbers in them compare as numbers. */
function comparePrereleases(left: string | undefined, right: string | undefined): number {
  if (left === undefined || right === undefined)
    return Number(right !== undefined) - Number(left !== undefined);
  const one = left.split(".");
  const other = right.split(".");
  for (let part = 0; part < Math.max(one.length, other.length); part += 1) {
    const a = one[part];
    const b = other[part];
    if (a === undefined || b === undefined)
      return Number(b === undefined) - Number(a === undefined);
    if (a === b) continue;
    const areNumbers = NUMBER.test(a) && NUMBER.test(b);
    if (areNumbers) return Number(a) - Number(b);
    if (NUMBER.test(a) !== NUMBER.test(b)) return NUMBER.test(a) ? -1 : 1;
    return a < b ? -1 : 1;
  }
  return 0;
}
