// Ends attempts for a worker: settled, completed by their own commit, or let go to a remote service. Each is
// counted and emitted once; its settlement waits in the settlement buffer for the next exchange.

import type { Ports } from "../shared/ports.js";
import type { Settlement } from "../store/store.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { ActiveAttempt, LetGo } from "./attempt.js";
import type { SettlementBuffer } from "./exchange.js";
import type { HandlerServices } from "./handler/services.js";
import type { Leases } from "./leases.js";
import {
  emitEnding,
  factsOf,
  isHandBack,
  type Report,
  settlementOf,
  transitionOf,
} from "./settlement.js";

const COMMITTED: Report = { ending: { kind: "completed" }, result: null, error: null };

export type CompleterParams = {
  readonly ports: Ports;
  readonly emit: Emit;
  readonly listens: (name: EventName) => boolean;
  readonly meter: Meter;
  readonly services: Pick<HandlerServices, "failedItems">;
  readonly leases: Pick<Leases, "letGo">;
  readonly settlementBuffer: Pick<SettlementBuffer, "push">;
};

/** Counts of attempts since the start, by how they ended. */
export type Tally = {
  /** Ended in this process or by the answer of a remote service; runs that were handed back do not count. */
  finished: number;
  /** Finished attempts that this process executed. */
  executed: number;
  /** Attempts that a remote service has received, or may have received. */
  dispatched: number;
  /** Dispatched attempts without an answer: the service may have received them or not. */
  unknown: number;
  handedBack: number;
};

export class Completer {
  readonly #params: CompleterParams;
  readonly #tally: Tally = { finished: 0, executed: 0, dispatched: 0, unknown: 0, handedBack: 0 };

  constructor(params: CompleterParams) {
    this.#params = params;
  }

  get tally(): Readonly<Tally> {
    return this.#tally;
  }

  settle(attempt: ActiveAttempt, report: Report): void {
    const { emit, listens, meter, services, ports, settlementBuffer } = this.#params;
    const transition = transitionOf(attempt, report.ending, () => ports.chance.next());
    const ranMs = attempt.startedMs === 0 ? 0 : ports.clock.monotonicMs() - attempt.startedMs;
    if (isHandBack(transition)) this.#tally.handedBack += 1;
    else this.#countFinished(attempt);
    const failedItems = services.failedItems(attempt);
    emitEnding({ attempt, report, transition, ranMs, emit, listens, meter, failedItems });
    attempt.span?.end(
      transition.to === "pending" ? transition.end : transition.to,
      transition.to === "completed" ? null : report.error,
    );
    settlementBuffer.push(settlementOf({ held: attempt, report, transition, ranMs }));
  }

  /** `ctx.commit` has completed the run while its handler still runs. */
  committed(attempt: ActiveAttempt, { ranMs }: Settlement): void {
    const { emit, listens, meter, services, leases } = this.#params;
    leases.letGo(attempt.claim.fence);
    this.#countFinished(attempt);
    const failedItems = services.failedItems(attempt);
    const transition = { to: "completed" } as const;
    const report = COMMITTED;
    emitEnding({ attempt, report, transition, ranMs, emit, listens, meter, failedItems });
  }

  /** The handler has ended after its commit; the run stays completed. */
  endedAfterCommit(attempt: ActiveAttempt, report: Report | LetGo): void {
    const error = "letGo" in report ? null : report.error;
    attempt.span?.end("completed", error);
    if (error) this.#params.emit("run.after_commit", { ...factsOf(attempt), error });
  }

  /** The remote service holds the run now, under the same fence: this instance neither renews nor settles it. */
  letGo(attempt: ActiveAttempt, { letGo, reason }: LetGo): void {
    const { emit, leases } = this.#params;
    const { fence } = attempt.claim;
    leases.letGo(fence);
    this.#tally.dispatched += 1;
    if (letGo === "unknown") this.#tally.unknown += 1;
    attempt.span?.end(letGo);
    const facts = { ...factsOf(attempt), fence };
    if (letGo === "accepted") emit("run.accepted", facts);
    else emit("run.unknown", { ...facts, reason });
  }

  #countFinished({ isDispatched }: ActiveAttempt): void {
    this.#tally.finished += 1;
    if (isDispatched) this.#tally.dispatched += 1;
    else this.#tally.executed += 1;
  }
}
