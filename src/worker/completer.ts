// How attempts leave a worker: settled, completed by their own commit, or let go to a service elsewhere.
// Each is counted and told of once; a settlement waits in the outbox for the next exchange.

import type { Ports } from "../shared/ports.js";
import type { Settlement } from "../store/store.js";
import type { Emit, EventName } from "../telemetry/log.js";
import type { Meter } from "../telemetry/meters.js";
import type { ActiveAttempt, LetGo } from "./attempt.js";
import type { SettlementBuffer } from "./exchange.js";
import type { HandlerServices } from "./handler/services.js";
import type { Leases } from "./leases.js";
import {
  factsOf,
  isHandBack,
  type Report,
  settlementOf,
  tellEnding,
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
  readonly outbox: Pick<SettlementBuffer, "push">;
};

/** What has become of attempts since the start. */
export type Tally = {
  /** Ended, here or by the answer of a service elsewhere; those handed back are none. */
  finished: number;
  /** Those of them that were executed here. */
  executed: number;
  /** Received by a service elsewhere, or perhaps. */
  dispatched: number;
  /** Those of them that nobody knows of whether they were received. */
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

  settle(execution: ActiveAttempt, report: Report): void {
    const { emit, listens, meter, services, ports, outbox } = this.#params;
    const transition = transitionOf(execution, report.ending, () => ports.chance.next());
    const ranMs = execution.startedMs === 0 ? 0 : ports.clock.monotonicMs() - execution.startedMs;
    if (isHandBack(transition)) this.#tally.handedBack += 1;
    else this.#countFinished(execution);
    const failedItems = services.failedItems(execution);
    tellEnding({ execution, report, transition, ranMs, emit, listens, meter, failedItems });
    execution.span?.end(
      transition.to === "pending" ? transition.end : transition.to,
      transition.to === "completed" ? null : report.error,
    );
    outbox.push(settlementOf({ held: execution, report, transition, ranMs }));
  }

  /** Its own transaction has completed it, while its handler still runs. */
  committed(execution: ActiveAttempt, { ranMs }: Settlement): void {
    const { emit, listens, meter, services, leases } = this.#params;
    leases.letGo(execution.claim.fence);
    this.#countFinished(execution);
    const failedItems = services.failedItems(execution);
    const transition = { to: "completed" } as const;
    const report = COMMITTED;
    tellEnding({ execution, report, transition, ranMs, emit, listens, meter, failedItems });
  }

  /** Its handler has ended too, which changes nothing about the run any more. */
  endedAfterCommit(execution: ActiveAttempt, report: Report | LetGo): void {
    const error = "letGo" in report ? null : report.error;
    execution.span?.end("completed", error);
    if (error) this.#params.emit("run.after_commit", { ...factsOf(execution), error });
  }

  /** Under the same fence, but no longer ours to renew or to end. */
  letGo(execution: ActiveAttempt, { letGo, reason }: LetGo): void {
    const { emit, leases } = this.#params;
    const { fence } = execution.claim;
    leases.letGo(fence);
    this.#tally.dispatched += 1;
    if (letGo === "unknown") this.#tally.unknown += 1;
    execution.span?.end(letGo);
    const facts = { ...factsOf(execution), fence };
    if (letGo === "accepted") emit("run.accepted", facts);
    else emit("run.unknown", { ...facts, reason });
  }

  #countFinished({ isDispatched }: ActiveAttempt): void {
    this.#tally.finished += 1;
    if (isDispatched) this.#tally.dispatched += 1;
    else this.#tally.executed += 1;
  }
}
