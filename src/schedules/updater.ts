// The desk at which one schedule is changed: it is read, a decision is made, and the decision is
// written if nobody changed the schedule meanwhile; else all of it is done again.

import type { RunId } from "../runs/rules/run.js";
import { OutcomeUnknownError, ScheduleBusyError } from "../shared/errors.js";
import { delay, type Ports } from "../shared/ports.js";
import type { NewSchedule, ScheduleChange, ScheduleState } from "../store/schedule-store.js";
import type { Store } from "../store/store.js";

/** What a decision wants written, and what its caller hears once it is. */
export type Decision<T> =
  | { readonly answer: T; readonly change?: ScheduleChange; readonly create?: NewSchedule }
  /** Write this, then decide again. */
  | { readonly first: ScheduleChange };

export type Read = { readonly state: ScheduleState | null; readonly now: number };

/** Somebody else is at the same schedule so often only if something is wrong. */
const TRIES_MAX = 200;

type Decide<T> = (read: Read) => Decision<T> | Promise<Decision<T>>;

export class Desk {
  readonly #ports: Ports;
  readonly #queues = new Map<string, Promise<void>>();

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** One at a time in this process: calls that race one another would mostly do things in vain. */
  async change<T>(store: Store, name: string, decide: Decide<T>): Promise<T> {
    const before = this.#queues.get(name);
    const mine = (before ?? Promise.resolve()).then(() => this.#change(store, name, decide));
    const over = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#queues.set(name, over);
    void over.then(() => {
      if (this.#queues.get(name) === over) this.#queues.delete(name);
    });
    return mine;
  }

  async #change<T>(store: Store, name: string, decide: Decide<T>): Promise<T> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const { now, schedules } = await store.scheduleStates({ names: [name] });
      const decision = await decide({ state: schedules[0] ?? null, now });
      if ("first" in decision) {
        await this.#write(store, decision.first);
        continue;
      }
      const { answer, change, create } = decision;
      if (create) {
        if (await this.#create(store, create)) return answer;
      } else if (!change || (await this.#write(store, change))) return answer;
      const { clock, chance } = this.#ports;
      await delay(clock, chance.next() * Math.min(50, 2 ** tries));
    }
    throw new ScheduleBusyError(name);
  }

  /** If the answer is lost, the next look finds what was made. */
  async #create(store: Store, schedule: NewSchedule): Promise<boolean> {
    try {
      return (await store.createSchedule(schedule)) !== null;
    } catch (error) {
      if (error instanceof OutcomeUnknownError) return false;
      throw error;
    }
  }

  /** If the answer is lost, the run of the change tells whether it was written. */
  async #write(store: Store, change: ScheduleChange): Promise<boolean> {
    try {
      return (await store.writeSchedules({ holder: null, changes: [change] })).length > 0;
    } catch (error) {
      if (!(error instanceof OutcomeUnknownError)) throw error;
      const run = madeBy(change);
      return run !== null && (await store.run(run)) !== null;
    }
  }
}

/** A run that is there only if the change was written. */
function madeBy({ runs: [run], checkIn }: ScheduleChange): RunId | null {
  if (run) return run.id;
  return checkIn && !checkIn.isAgain ? checkIn.id : null;
}
