// Holds everything outside the instances: remote workers, the service that runs are dispatched to, and the network
// between them and the instances.

import { Dispatcher } from "../../../remote/dispatch/dispatcher.js";
import { readDispatch } from "../../../remote/dispatch/targets.js";
import { RemoteHistory } from "../checkers/remote.js";
import type { RunHistory } from "../checkers/runs.js";
import { REMOTE_WORKER_PREFIX, TARGET_OPTIONS } from "../workload/jobs.js";
import type { SimulatedDatabase } from "./database.js";
import type { SimulatedProcess } from "./process.js";
import { type ConnectionWorld, RemoteConnection } from "./remote-connection.js";
import { type RemoteWorkerWorld, workRemotely } from "./remote-worker.js";
import { Target, type TargetWorld } from "./target.js";

export type RemoteWorld = ConnectionWorld &
  Omit<RemoteWorkerWorld & TargetWorld, "connection" | "history"> & { readonly runs: RunHistory };

const WORKERS = 3;
const LIMIT_MAX = 3;
const LAST_LIMIT = 20;

export class RemoteSide {
  readonly #world: RemoteWorld;
  readonly #workers: RemoteWorkerWorld;
  readonly #target: Target;
  readonly #history: RemoteHistory;
  #lastCount = 0;
  #isFinishing = false;

  constructor(world: RemoteWorld) {
    this.#world = world;
    this.#history = new RemoteHistory(world.log, world.runs);
    const shared = { ...world, connection: new RemoteConnection(world), history: this.#history };
    this.#workers = shared;
    this.#target = new Target(shared);
  }

  /** Makes the dispatcher of this process. */
  sendsOf(process: SimulatedProcess): Dispatcher {
    const { log } = this.#world;
    return new Dispatcher({
      ...readDispatch({ ...TARGET_OPTIONS, publicUrlField: "publicUrl" }),
      clock: process.clock,
      network: this.#target.networkOf(process),
      onCircuit: ({ isOpen }) => log.saw(isOpen ? "circuit-opened" : "circuit-closed"),
    });
  }

  work({ id, luck }: { readonly id: number; readonly luck: number }): Promise<string> {
    const name = `${REMOTE_WORKER_PREFIX}${1 + (luck % WORKERS)}`;
    return workRemotely(
      { name, claimId: `claim-${id}`, limit: 1 + (luck % LIMIT_MAX) },
      this.#workers,
    );
  }

  /** In the quiet, claims and executes the remaining remote runs. */
  async finish(): Promise<void> {
    if (this.#isFinishing) return;
    this.#isFinishing = true;
    this.#lastCount += 1;
    const claimId = `last-${this.#lastCount}`;
    await workRemotely(
      { name: `${REMOTE_WORKER_PREFIX}last`, claimId, limit: LAST_LIMIT },
      this.#workers,
    );
    this.#isFinishing = false;
  }

  checkEnd(database: SimulatedDatabase): void {
    this.#history.checkItems(database);
  }
}
