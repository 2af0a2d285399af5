// Declares the store's verbs for pausing everything, and maps their rows. From the commit on, every statement that
// would fire or claim reads the pause itself: an instance needs no notification first.

import type { Pause } from "../operations/rules/pause.js";
import type { Audited } from "./audit.js";
import { type Row, textOrNull } from "./rows.js";

/** Why an instance claims and fires nothing: everything is paused, or it alone was told to be quiet. */
export type GlobalPause = {
  readonly kind: "all" | "quiet";
  readonly since: number;
  readonly note: string | null;
};

export interface PauseStore {
  /** Pausing again keeps the time and who did it, and the note if none is given. */
  pauseAll(
    params: { readonly by: string | null; readonly note: string | null } & Audited,
  ): Promise<Pause>;
  /** The pause that this has ended; null if none was on. */
  resumeAll(params?: Audited): Promise<Pause | null>;
  /** The pause that is on. */
  pauseOfAll(): Promise<Pause | null>;
  /**
   * Makes an instance claim and fire nothing until it is woken; it hears of it by its own poll. False if
   * there is no such instance. Quieting again keeps the time, and the note if none is given.
   */
  quietInstance(
    params: {
      readonly id: string;
      readonly isQuiet: boolean;
      readonly by: string | null;
      readonly note: string | null;
    } & Audited,
  ): Promise<boolean>;
}

// Row mappers, the same for both databases.

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
