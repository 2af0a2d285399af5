// The runs of a simulation and the places that they are in, as rows enter and leave the tables: each in one
// place (S16), and none that nobody made (S13). Beside them what runs refer to: lanes, policies, queues.

import type { Chronicle } from "../event-log.js";
import {
  isActive,
  type LeaseFacts,
  type PolicyFacts,
  placesText,
  type RunFacts,
} from "./run-facts.js";

export class RunBook {
  readonly runs = new Map<string, RunFacts>();
  readonly removed = new Set<string>();
  readonly lanes = new Map<number, { readonly queue: string; readonly job: string }>();
  readonly policies = new Map<number, PolicyFacts>();
  readonly pausedQueues = new Set<string>();
  readonly #chronicle: Chronicle;
  #touched = new Map<string, RunFacts>();
  #left = new Map<string, LeaseFacts>();

  constructor(chronicle: Chronicle) {
    this.#chronicle = chronicle;
  }

  /** The runs of which the transaction that is being judged says something. */
  get touched(): Map<string, RunFacts> {
    return this.#touched;
  }

  /** The leases that runs leave by it. */
  get left(): Map<string, LeaseFacts> {
    return this.#left;
  }

  begin(): void {
    this.#touched = new Map();
    this.#left = new Map();
  }

  touch(id: string): RunFacts | undefined {
    const known = this.#touched.get(id);
    if (known) return known;
    const run = this.runs.get(id);
    if (!run) {
      this.#chronicle.violate("S13", `Rows speak of run ${id}, which does not exist.`);
      return undefined;
    }
    run.wasActive = isActive(run);
    this.#touched.set(id, run);
    return run;
  }

  enter(run: RunFacts, place: number): void {
    if ((run.places & place) !== 0)
      this.#chronicle.violate("S16", `Run ${run.id} is twice ${placesText(place)}.`);
    run.places |= place;
  }

  leave(id: string, place: number): void {
    const run = this.touch(id);
    if (!run) return;
    if ((run.places & place) === 0)
      this.#chronicle.violate(
        "S16",
        `Run ${id} left a place that it was not in: ${placesText(place)}.`,
      );
    run.places &= ~place;
  }
}
