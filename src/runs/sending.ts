// How a run that was asked for reaches the database: alone or with others of the same moment, in a
// statement of its own, or inside the caller's transaction; under the trace that is going on, if any.

import { ConfigurationError } from "../shared/errors.js";
import type { Ids } from "../shared/ports.js";
import type { Store } from "../store/store.js";
import type { Tracing } from "../telemetry/tracing.js";
import type { Enqueuer } from "./enqueuer.js";
import type { Sender } from "./job.js";

export type SenderParams = {
  readonly store: Store;
  readonly opened: (verb: string) => Promise<Store>;
  /** Throws where the instance has stopped, answers whether the database is open. */
  readonly isOpenFor: (verb: string) => boolean;
  readonly enqueuer: Enqueuer;
  readonly tracing: Tracing | null;
  readonly ids: Ids;
  /** Runs were stored in this process. */
  readonly onStored: () => void;
};

export function newSender(params: SenderParams): Sender {
  const { store, opened, isOpenFor, enqueuer, tracing, ids } = params;
  // On SQLite a claim waits until the caller's transaction is over, and then finds its runs; on
  // PostgreSQL the commit itself tells all who listen.
  const storedWithin = () => {
    if (store.engine === "sqlite") params.onStored();
  };
  return {
    one: async (run) => {
      await opened("enqueue");
      if (!tracing) return enqueuer.one(run);
      return tracing.enqueue([run], ([traced = run]) => enqueuer.one(traced));
    },
    many: async (runs) => {
      await opened("enqueueMany");
      if (!tracing) return enqueuer.many(runs);
      return tracing.enqueue(runs, (traced) => enqueuer.many(traced));
    },
    within: async ({ tx, runs }) => {
      await opened("enqueue");
      const answers = await (tracing
        ? tracing.enqueue(runs, (traced) => store.enqueueWithin({ tx, runs: traced }))
        : store.enqueueWithin({ tx, runs }));
      storedWithin();
      return answers;
    },
    withinSync: ({ tx, runs }) => {
      if (!isOpenFor("enqueueSync")) throw notOpen();
      const answers = tracing
        ? tracing.enqueueSync(runs, (traced) => store.enqueueWithinSync({ tx, runs: traced }))
        : store.enqueueWithinSync({ tx, runs });
      storedWithin();
      return answers;
    },
    newId: () => ids.run(),
  };
}

function notOpen(): ConfigurationError {
  const message =
    "needs a database that is open, and opening takes time; first `await holdfast.start()` or any other verb";
  return new ConfigurationError([{ field: "enqueueSync()", message }]);
}
