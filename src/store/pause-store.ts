// What the engine asks of a database about the pause of everything. From its commit on every statement
// that would fire or claim finds it, whoever sends it: no instance has to hear of it first.

import type { Pause } from "../operations/rules/pause.js";
import type { Audited } from "./audit-store.js";

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
