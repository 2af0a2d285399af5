// All that is not an instance: workers elsewhere, the service that runs are dispatched to, and the line
// between them and the instances.

import { Dispatcher } from "../../../remote/dispatch/dispatcher.js";
import { readDispatch } from "../../../remote/dispatch/targets.js";
import { RemoteHistory } from "../checkers/remote.js";
import type { RunHistory } from "../checkers/runs.js";
import type { SimulatedDatabase } from "./database.js";
import type { SimulatedProcess } from "./process.js";
import { ElsewhereLine, type LineWorld } from "./remote-line.js";
import { ELSEWHERE, TARGET_OPTIONS } from "./remote-names.js";
import { type RemoteWorkerWorld, workRemotely } from "./remote-worker.js";
import { Target, type TargetWorld } from "./target.js";

export type RemoteWorld = LineWorld &
  Omit<RemoteWorkerWorld & TargetWorld, "line" | "history"> & { readonly runs: RunHistory };

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
    this.#history = new RemoteHistory(world.chronicle, world.runs);
    const shared = { ...world, line: new ElsewhereLine(world), history: this.#history };
    this.#workers = shared;
    this.#target = new Target(shared);
  }

  /** What sends runs for this process. */
  sendsOf(process: SimulatedProcess): Dispatcher {
    const { chronicle } = this.#world;
    return new Dispatcher({
      ...readDispatch({ ...TARGET_OPTIONS, publicUrlField: "publicUrl" }),
      clock: process.clock,
      network: this.#target.networkOf(process),
      onCircuit: ({ isOpen }) => chronicle.saw(isOpen ? "circuit-opened" : "circuit-closed"),
    });
  }

  work({ id, luck }: { readonly id: number; readonly luck: number }): Promise<string> {
    const name = `${ELSEWHERE}${1 + (luck % WORKERS)}`;
    return workRemotely(
      { name, claimId: `claim-${id}`, limit: 1 + (luck % LIMIT_MAX) },
      this.#workers,
    );
  }

  /** In the quiet somebody is there for what is left. */
  async finish(): Promise<void> {
    if (this.#isFinishing) return;
    this.#isFinishing = true;
    this.#lastCount += 1;
    const claimId = `last-${this.#lastCount}`;
    await workRemotely({ name: `${ELSEWHERE}last`, claimId, limit: LAST_LIMIT }, this.#workers);
    this.#isFinishing = false;
  }

  judgeEnd(database: SimulatedDatabase): void {
    this.#history.judgeItems(database);
  }
}
