// Pauses and resumes everything, for `holdfast.pause()`: one switch beside the pauses of schedules and queues. Once it is
// stored, no process fires or claims anything; running runs go on.

import { ConfigurationError } from "../shared/errors.js";
import { readBy, readNote, requireOptions } from "../shared/options.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import { type Actor, auditEntry } from "./rules/audit.js";
import type { Pause as PauseRecord } from "./rules/pause.js";

/** A pause of everything. */
export type Pause = {
  readonly since: Date;
  readonly by: string | null;
  readonly note: string | null;
};

export type PauseOptions = {
  /** The reason, for other operators. */
  readonly note?: string | undefined;
  readonly by?: string | undefined;
};

function readPause(options: PauseOptions): {
  readonly by: string | null;
  readonly note: string | null;
} {
  requireOptions(options, "pause()");
  const problems = refuseUnknownMembers(options, ["note", "by"], "pause()");
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { by, note } = options;
  return {
    by: readBy(by === undefined ? undefined : { by }, "pause()") ?? null,
    note: readNote(note, "pause().note"),
  };
}

type PausingParams = {
  readonly store: (verb: string) => Promise<Store>;
  readonly actor: Actor;
  readonly emit: Emit;
};

export async function pauseAll(params: PausingParams, options: PauseOptions): Promise<Pause> {
  const { actor, emit } = params;
  const { by, note } = readPause(options);
  const store = await params.store("pause");
  const facts = { verb: "pause", noun: "everything", name: null, note } as const;
  const audit = auditEntry(actor, facts, by);
  const pause = await store.pause.begin({ by: by ?? actor.who, note, audit });
  emit("everything.paused", { by: pause.by, note: pause.note });
  return toPause(pause);
}

/** Returns the ended pause, or null if there was none. */
export async function resumeAll(
  params: PausingParams & { readonly onChanged: () => void },
  options: { readonly by?: string },
): Promise<Pause | null> {
  const { actor, emit } = params;
  const { by } = readPause(options);
  const store = await params.store("resume");
  const audit = auditEntry(actor, { verb: "resume", noun: "everything", name: null }, by);
  const pause = await store.pause.end({ audit });
  if (!pause) return null;
  const pausedMs = (pause.until ?? pause.at) - pause.at;
  emit("everything.resumed", { by: by ?? actor.who, pausedMs });
  store.wake();
  params.onChanged();
  return toPause(pause);
}

export async function pauseOf(store: Store): Promise<Pause | null> {
  return toPause(await store.pause.get());
}

function toPause(record: PauseRecord): Pause;
function toPause(record: PauseRecord | null): Pause | null;
function toPause(record: PauseRecord | null): Pause | null {
  if (!record) return null;
  return { since: new Date(record.at), by: record.by, note: record.note };
}
