// Runs the workers of an instance as one: a worker for local handlers, and one for each dispatch target with slots
// of its own, so that a slow target takes no slot from another worker. They share the polls, the heartbeat and the name of
// the instance.

import type { RunId } from "../runs/rules/run.js";
import type { Ports } from "../shared/ports.js";
import type { Renewed } from "./leases.js";
import type { StopOptions, StopReport, Worker } from "./worker.js";

export class Workers {
  readonly #workers: readonly Worker[];
  readonly #ports: Ports;

  constructor(workers: readonly Worker[], ports: Ports) {
    this.#workers = workers;
    this.#ports = ports;
  }

  /** Starts with a random worker, so that none starves when they share a claim budget. */
  start(): void {
    const { length } = this.#workers;
    const first = length > 1 ? Math.floor(this.#ports.random.next() * length) : 0;
    const order = [...this.#workers.slice(first), ...this.#workers.slice(0, first)];
    for (const worker of order) worker.start();
  }

  wake(): void {
    for (const worker of this.#workers) worker.wake();
  }

  /** Wakes only the workers that execute one of these jobs. */
  wakeFor(jobs: readonly string[]): void {
    for (const worker of this.#workers) if (jobs.some((job) => worker.executes(job))) worker.wake();
  }

  /** Stops or resumes claiming. Held runs go on. */
  setPaused(isPaused: boolean): void {
    for (const worker of this.#workers) worker.setPaused(isPaused);
  }

  wakeForLimited(): void {
    for (const worker of this.#workers) worker.wakeForLimited();
  }

  wakeForSuspect(): void {
    for (const worker of this.#workers) worker.wakeForSuspect();
  }

  readonly leases = {
    fences: (): number[] => this.#workers.flatMap(({ leases }) => leases.fences()),
    held: (): { readonly fence: number; readonly leaseMs: number }[] =>
      this.#workers.flatMap(({ leases }) => leases.held()),
    shortestMs: (): number | null => {
      const lengths = this.#workers.map(({ leases }) => leases.shortestMs());
      const held = lengths.filter((each) => each !== null);
      return held.length === 0 ? null : Math.min(...held);
    },
  };

  renewed(renewed: Renewed): void {
    for (const worker of this.#workers) worker.renewed(renewed);
  }

  /** Aborts these runs, or settles them as cancelled if they have not started. */
  cancelRequested(ids: readonly RunId[]): void {
    for (const worker of this.#workers) worker.cancelRequested(ids);
  }

  relieve(): void {
    for (const worker of this.#workers) worker.relieve();
  }

  abandon(): void {
    for (const worker of this.#workers) worker.abandon();
  }

  async stop(options: StopOptions): Promise<StopReport> {
    const reports = await Promise.all(this.#workers.map((worker) => worker.stop(options)));
    const sum = (member: keyof StopReport) =>
      reports.reduce((total, report) => total + report[member], 0);
    return {
      finished: sum("finished"),
      handedBack: sum("handedBack"),
      abandoned: sum("abandoned"),
    };
  }

  /** The jobs that run in this process now, or ran at `sinceMs` or later. */
  jobsSince(sinceMs: number): string[] {
    return this.#workers.flatMap((worker) => worker.jobsSince(sinceMs));
  }

  /** Runs that are executed now, those of remote services included. */
  get runningCount(): number {
    return this.#workers.reduce((sum, { runningCount }) => sum + runningCount, 0);
  }

  get isDrained(): boolean {
    return this.#workers.every(({ isDrained }) => isDrained);
  }

  /** Attempts that this process has executed to their end. */
  get executedCount(): number {
    return this.#workers.reduce((sum, { executedCount }) => sum + executedCount, 0);
  }

  /** Attempts that a remote service has received, or may have received. */
  get dispatchedCount(): number {
    return this.#workers.reduce((sum, { dispatchedCount }) => sum + dispatchedCount, 0);
  }
}
