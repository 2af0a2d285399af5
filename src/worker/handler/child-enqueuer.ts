// Calls of `ctx.enqueue` that come together travel together, by the run that makes them: each of their
// transactions is under one fence. A lone call goes out at once.

import type { EnqueueAnswer, Grant, NewRun, Store } from "../../store/store.js";

/** Each is a transaction of its own, on PostgreSQL on a connection of its own. */
const IN_FLIGHT_MAX = 2;
const TOGETHER_MAX = 1_000;

type Asked = {
  readonly run: NewRun;
  readonly resolve: (answer: EnqueueAnswer | "stale") => void;
  readonly reject: (error: unknown) => void;
};

export class ChildEnqueuer {
  readonly #store: Store;
  readonly #asked = new Map<string, { readonly parent: Grant; readonly children: Asked[] }>();
  #inFlight = 0;
  #isScheduled = false;

  constructor(store: Store) {
    this.#store = store;
  }

  one(parent: Grant, run: NewRun): Promise<EnqueueAnswer | "stale"> {
    return new Promise((resolve, reject) => {
      const name = `${parent.id} ${parent.fence}`;
      const waiting = this.#asked.get(name) ?? { parent, children: [] };
      this.#asked.set(name, waiting);
      waiting.children.push({ run, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // A microtask later, so that calls made together travel together.
    queueMicrotask(() => {
      this.#isScheduled = false;
      while (this.#inFlight < IN_FLIGHT_MAX && this.#asked.size > 0) void this.#sendFirst();
    });
  }

  async #sendFirst(): Promise<void> {
    const [name, { parent, children }] = this.#asked.entries().next().value as [
      string,
      { parent: Grant; children: Asked[] },
    ];
    const together = children.splice(0, TOGETHER_MAX);
    if (children.length === 0) this.#asked.delete(name);
    this.#inFlight += 1;
    try {
      const runs = together.map(({ run }) => run);
      const answers = await this.#store.enqueueChildren({ parent, runs });
      together.forEach(({ resolve }, at) => {
        resolve(answers === "stale" ? answers : (answers[at] as EnqueueAnswer));
      });
    } catch (error) {
      for (const { reject } of together) reject(error);
    } finally {
      this.#inFlight -= 1;
      if (this.#asked.size > 0) this.#schedule();
    }
  }
}
