// Rows about the pause of everything as the store's records, the same for both databases.

import type { Pause } from "../operations/rules/pause.js";
import type { GlobalPause } from "./pause-store.js";
import type { PollAnswer } from "./store.js";

type Row = Record<string, unknown>;

export function toPause(row: Row): Pause {
  return {
    at: Number(row.at),
    until: row.until_at === null ? null : Number(row.until_at),
    by: textOrNull(row.by),
    note: textOrNull(row.note),
  };
}

/** `paused` and `quiet` of a poll: JSON of since and note, or null. */
export function toGlobalPause({ paused, quiet }: Row): GlobalPause | null {
  const found = paused ?? quiet;
  if (found === null || found === undefined) return null;
  const [since, note] = (typeof found === "string" ? JSON.parse(found) : found) as unknown[];
  return { kind: paused == null ? "quiet" : "all", since: Number(since), note: textOrNull(note) };
}

/** Whoever may claim and fire nothing is told that there is nothing to claim or to fire. */
export function heeding(answer: PollAnswer): PollAnswer {
  if (answer.halt === null) return answer;
  return {
    ...answer,
    hasReady: false,
    hasSuspect: false,
    hasLimited: false,
    hasDueSchedule: false,
    hasFreeGate: false,
  };
}

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}
