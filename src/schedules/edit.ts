// Decides how to create, change, pause, resume or delete one schedule, from the state that was read; never writes. First,
// all ticks up to now are settled under the old definition.

import {
  type Actor,
  type AuditEntry,
  type AuditFacts,
  auditEntry,
  scheduleChange,
} from "../operations/rules/audit.js";
import {
  ConfigurationError,
  ScheduleChangedError,
  ScheduleNotFoundError,
} from "../shared/errors.js";
import { describeFailure } from "../shared/failure.js";
import type {
  EditKind,
  ScheduleEdit,
  ScheduleProgress,
  ScheduleSource,
  ScheduleStanding,
} from "../store/schedules/changes.js";
import type { ScheduleState } from "../store/schedules/state.js";
import type { TickContext } from "./advance.js";
import { evaluateAt } from "./rules/monitor.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import { type CachedSchedule, compile, tzdataOf } from "./schedule-cache.js";
import { type Decision, nextAfter, type Read, settleTicks } from "./updater.js";

/** The author of pauses of schedules that vanished from the code; such a pause ends with a new declaration. */
export const VANISHED_BY = "holdfast";

/** The wanted state of a schedule. */
export type Wanted = {
  readonly name: string;
  readonly job: string;
  readonly definition: ScheduleDefinition;
  readonly input: string;
  readonly app: string | null;
  readonly source: ScheduleSource;
  readonly release: string | null;
  readonly codeHash: string | null;
  /** Makes this definition the newest one, whichever definitions were seen before. */
  readonly isForced: boolean;
};

export type ChangeAuthor = {
  readonly by: string | null;
  readonly actor: Actor;
  readonly random: number;
} & Omit<TickContext, "now" | "lastPolledAt">;

/** The audit entry of a change of this schedule. */
export function audited(
  { actor, by }: Pick<ChangeAuthor, "actor" | "by">,
  facts: Omit<AuditFacts, "noun">,
): { readonly audit: AuditEntry } {
  return { audit: auditEntry(actor, { noun: "schedule", ...facts }, by) };
}

export type Edited = "created" | "edited" | "unchanged";

const UNTROUBLED: ScheduleStanding = {
  pausedAt: null,
  pausedBy: null,
  pauseNote: null,
  brokenAt: null,
  brokenError: null,
};

/** A failure before a change does not delay runs after it. */
const NOTHING_HELD = { holdUntil: null, holdRun: null };

const NO_PROGRESS: ScheduleProgress = {
  cursorAt: 0,
  nextAt: null,
  isEnded: false,
  holdUntil: null,
  holdRun: null,
  lastRun: null,
  lastTickAt: null,
  live: [],
  isGated: false,
  isReplacing: false,
  tzdata: null,
};

/** Creates the schedule, or edits it if it differs. */
export function upsertDecision(
  { state, now }: Read,
  wanted: Wanted,
  author: ChangeAuthor,
): Decision<Edited> {
  if (!state) return creation(wanted, now, author);
  const isSame =
    state.deletedAt === null &&
    state.brokenAt === null &&
    state.job === wanted.job &&
    state.input === wanted.input &&
    state.definition === JSON.stringify(wanted.definition);
  const isSameOrigin =
    wanted.codeHash === null || (wanted.codeHash === state.codeHash && wanted.app === state.app);
  if (isSame && isSameOrigin && !wanted.isForced) return { result: "unchanged" };
  const settled = settleTicks(state, { ...author, now, lastPolledAt: null });
  if (!settled.isSettled) return { first: settled.change };
  const { change } = settled;
  const anchorAt = anchorAfter(state, wanted.definition, now);
  const edit = editOf(wanted, {
    kind: state.deletedAt === null ? "edited" : "recreated",
    anchorAt,
    author,
  });
  const compiled = compile(edit);
  const next = isSame
    ? { nextAt: change.progress.nextAt, isEnded: change.progress.isEnded }
    : nextAfter(compiled, { cursorAt: change.progress.cursorAt, now, random: author.random });
  const isPaused = state.pausedAt !== null && state.deletedAt === null;
  const { pausedAt, pausedBy, pauseNote } = state;
  const isEdit = state.deletedAt === null;
  return {
    result: isEdit ? "edited" : "created",
    change: {
      ...change,
      edit,
      ...audited(author, {
        verb: isEdit ? "edit" : "create",
        name: wanted.name,
        change: scheduleChange(isEdit ? state : null, edit),
      }),
      standing: isPaused ? { ...UNTROUBLED, pausedAt, pausedBy, pauseNote } : UNTROUBLED,
      progress: {
        ...change.progress,
        ...next,
        // The new definition has no ticks before the edit.
        cursorAt: isSame ? change.progress.cursorAt : Math.max(change.progress.cursorAt, now),
        ...(isSame ? {} : NOTHING_HELD),
        nextAt: isPaused ? null : next.nextAt,
        tzdata: tzdataOf(wanted.definition),
      },
    },
  };
}

/** Refuses a change that was meant for another version, unless it changes nothing. */
export function requireVersion(
  { state }: Read,
  params: {
    readonly name: string;
    readonly ifVersion: number | undefined;
    readonly decision: Decision<Edited>;
  },
): void {
  const { name, ifVersion, decision } = params;
  const isDone = "result" in decision && decision.result === "unchanged";
  if (ifVersion === undefined || isDone) return;
  const version = state && state.deletedAt === null ? state.version : null;
  if ((version ?? 0) !== ifVersion)
    throw new ScheduleChangedError({ schedule: name, ifVersion, version });
}

function creation(wanted: Wanted, now: number, author: ChangeAuthor): Decision<Edited> {
  const edit = editOf(wanted, { kind: "created", anchorAt: gridStart(now), author });
  const { when } = compile(edit);
  const { fromMs, kind } = wanted.definition.when;
  // A random interval begins at once: its first tick must not be before the cursor.
  const isRange = kind === "range";
  const nextAt = isRange
    ? when.firstAllowed(Math.max(now, fromMs ?? now))
    : evaluateAt(wanted.definition, when.next(now));
  const progress = {
    ...NO_PROGRESS,
    cursorAt: isRange ? now - 1 : now,
    nextAt,
    isEnded: nextAt === null,
    tzdata: tzdataOf(wanted.definition),
  };
  const { name } = wanted;
  const { audit } = audited(author, { verb: "create", name, change: scheduleChange(null, edit) });
  return { result: "created", create: { name, edit, progress, audit } };
}

export function pauseDecision(
  read: Read,
  params: { readonly name: string; readonly note: string | null; readonly author: ChangeAuthor },
): Decision<void> {
  const state = existing(read, params.name);
  const { note, author } = params;
  const { now } = read;
  // A pause by an operator replaces one that ends by itself.
  const isTaken = state.pausedBy === VANISHED_BY && author.by !== VANISHED_BY;
  const isSame = state.pausedAt !== null && !isTaken && (note === null || note === state.pauseNote);
  if (isSame) return { result: undefined };
  const settled = settleTicks(state, { ...author, now, lastPolledAt: null });
  if (!settled.isSettled) return { first: settled.change };
  const { brokenAt, brokenError } = state;
  return {
    result: undefined,
    change: {
      ...settled.change,
      ...audited(author, { verb: "pause", name: params.name, note }),
      progress: { ...settled.change.progress, nextAt: null },
      standing: { pausedAt: now, pausedBy: author.by, pauseNote: note, brokenAt, brokenError },
    },
  };
}

/** Also resumes a broken schedule, which is then evaluated again. */
export function resumeDecision(
  read: Read,
  params: { readonly name: string; readonly author: ChangeAuthor },
): Decision<void> {
  const state = existing(read, params.name);
  const { now } = read;
  if (state.pausedAt === null && state.brokenAt === null) return { result: undefined };
  const settled = settleTicks(state, { ...params.author, now, lastPolledAt: null });
  if (!settled.isSettled) return { first: settled.change };
  const { progress } = settled.change;
  const { random } = params.author;
  const next = state.isEnded
    ? { nextAt: null, isEnded: true }
    : nextAfter(readable(state), { cursorAt: progress.cursorAt, now, random });
  return {
    result: undefined,
    change: {
      ...settled.change,
      ...audited(params.author, { verb: "resume", name: params.name }),
      standing: UNTROUBLED,
      progress: { ...progress, ...next, ...NOTHING_HELD },
    },
  };
}

/** A soft delete: id and cursor stay, so that a recreated schedule never fires a tick twice. */
export function deleteDecision(
  read: Read,
  params: { readonly name: string; readonly author: ChangeAuthor },
): Decision<void> {
  const state = existing(read, params.name);
  const settled = settleTicks(state, { ...params.author, now: read.now, lastPolledAt: null });
  if (!settled.isSettled) return { first: settled.change };
  // The definition stays as it is, readable or not; no tick is computed from it any more.
  const edit: ScheduleEdit = {
    ...state,
    kind: "deleted",
    by: params.author.by,
    range: null,
    afterFailure: null,
    priority: null,
    queue: null,
    tags: [],
    isForced: false,
    isDeleted: true,
  };
  const over = { isNew: false, by: null, isEnded: true, isCancelled: true, run: null };
  return {
    result: undefined,
    change: {
      ...settled.change,
      ...audited(params.author, { verb: "delete", name: params.name }),
      edit,
      progress: { ...settled.change.progress, nextAt: null },
      ...(state.backfill ? { backfill: { ...over, state: state.backfill } } : {}),
    },
  };
}

/** Throws if the definition cannot be read: then it can only be replaced, not resumed. */
function readable(state: ScheduleState): CachedSchedule {
  try {
    return compile(state);
  } catch (error) {
    const message =
      `its definition cannot be read (${describeFailure(error).message}); ` +
      "give it a new one with schedules.upsert(), or delete it";
    throw new ConfigurationError([{ field: `schedule "${state.name}"`, message }]);
  }
}

/** Throws for a deleted schedule as for one that never existed. */
export function existing({ state }: Read, name: string): ScheduleState {
  if (!state || state.deletedAt !== null) throw new ScheduleNotFoundError(name);
  return state;
}

/** An edit by a call keeps the app of the schedule and the definition in code that it came from. */
export function fromCall(
  wanted: Pick<Wanted, "name" | "job" | "definition" | "input" | "isForced">,
  state: ScheduleState | null,
  app: string | null,
): Wanted {
  const isKept = state !== null && state.deletedAt === null;
  if (!isKept) return { ...wanted, app, source: "api", release: null, codeHash: null };
  const { source, release, codeHash } = state;
  return { ...wanted, app: state.app, source, release, codeHash };
}

function editOf(
  wanted: Wanted,
  params: { readonly kind: EditKind; readonly anchorAt: number; readonly author: ChangeAuthor },
): ScheduleEdit {
  const { definition } = wanted;
  const { kind, everyMs, everyMaxMs } = definition.when;
  return {
    kind: params.kind,
    by: params.author.by,
    job: wanted.job,
    definition: JSON.stringify(definition),
    input: wanted.input,
    anchorAt: params.anchorAt,
    range:
      kind === "range" && everyMs !== null
        ? { minMs: everyMs, maxMs: everyMaxMs ?? everyMs }
        : null,
    afterFailure: definition.afterFailure,
    priority: definition.priority,
    queue: definition.queue,
    tags: definition.tags,
    app: wanted.app,
    source: wanted.source,
    release: wanted.release,
    codeHash: wanted.codeHash,
    isForced: wanted.isForced,
    isDeleted: false,
  };
}

/** A new rhythm begins now; otherwise the grid keeps its anchor, whichever times are excluded. */
export function anchorAfter(state: ScheduleState, wanted: ScheduleDefinition, now: number): number {
  const isSame = state.deletedAt === null && sameRhythm(state.definition, wanted);
  return isSame ? state.anchorAt : gridStart(now);
}

/** A grid begins on a whole second, so that a tick is the same instant as its text without milliseconds. */
export function gridStart(now: number): number {
  return Math.floor(now / 1_000) * 1_000;
}

function sameRhythm(stored: string, { when: wanted }: ScheduleDefinition): boolean {
  try {
    const before = (JSON.parse(stored) as ScheduleDefinition).when;
    const members = ["kind", "everyMs", "everyMaxMs", "fromMs"] as const;
    return members.every((member) => before[member] === wanted[member]);
  } catch {
    return false;
  }
}
