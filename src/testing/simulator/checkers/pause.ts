// Checks the pause of everything (S14): while it is on, no schedule fires and no run is claimed.

import { OUTCOMES } from "../../../schedules/rules/tick.js";
import type { EventLog } from "../event-log.js";
import type { Note } from "./row-changes.js";
import { isReady, type Transaction } from "./run-places.js";
import type { RunHistory } from "./runs.js";

export class PauseHistory {
  readonly #log: EventLog;
  readonly #runs: RunHistory;
  #isOn = false;

  constructor(log: EventLog, runs: RunHistory) {
    this.#log = log;
    this.#runs = runs;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  commit({ notes, process, verb }: Transaction): void {
    for (const note of notes) {
      const [kind] = note;
      if (this.#isOn && isForbidden(note))
        this.#log.violate(
          "S14",
          `${kind} ${note[1]} by ${verb} of ${process.label} while everything is paused.`,
        );
      if (kind === "pause+") this.#isOn = true;
      else if (kind === "pause~" && note[2] !== null) this.#ended();
    }
  }

  #ended(): void {
    this.#isOn = false;
    if ([...this.#runs.runs.values()].some(isReady)) this.#log.saw("everything-paused");
  }
}

function isForbidden(note: Note): boolean {
  return note[0] === "lease+" || (note[0] === "tick+" && OUTCOMES[Number(note[5])] === "fired");
}
