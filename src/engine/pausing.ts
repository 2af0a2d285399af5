// The pause of everything: one switch beside each schedule's own pause and each queue's. Once it is in
// the database nothing fires and nothing is claimed, in any process; what runs goes on.

import { ConfigurationError } from "../core/errors.js";
import type { Pause as PauseRecord } from "../core/pause.js";
import { refuseUnknownMembers } from "../core/suggest.js";
import type { Store } from "../store/store.js";
import { readBy, readNote, requireOptions } from "./schedule-options.js";

/** A pause of everything. */
export type Pause = {
  readonly since: Date;
  readonly by: string | null;
  readonly note: string | null;
};

export type PauseOptions = {
  /** Why, for whoever looks at it. */
  readonly note?: string;
  readonly by?: string;
};

export function readPause(options: PauseOptions): {
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

export async function pauseOf(store: Store): Promise<Pause | null> {
  return toPause(await store.pauseOfAll());
}

export function toPause(record: PauseRecord): Pause;
export function toPause(record: PauseRecord | null): Pause | null;
export function toPause(record: PauseRecord | null): Pause | null {
  if (!record) return null;
  return { since: new Date(record.at), by: record.by, note: record.note };
}
