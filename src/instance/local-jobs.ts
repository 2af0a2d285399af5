// The jobs that this process can see to, by who carries them out: a handler here, or a target. More may
// come at any time; the maps that were handed out grow along.

import { dispatchTo } from "../remote/dispatching.js";
import type { JobDefinition } from "../runs/rules/job.js";
import type { Handler, RunnableJob } from "../worker/execution.js";
import type { Around } from "../worker/hooks.js";
import type { Basis } from "./context.js";

export class RunnableJobs {
  readonly #all = new Map<string, RunnableJob>();
  readonly #byWorker = new Map<string | null, Map<string, RunnableJob>>();

  add(job: RunnableJob): void {
    this.#all.set(job.name, job);
    this.#of(job.worker).set(job.name, job);
  }

  has(name: string): boolean {
    return this.#all.has(name);
  }

  names(): string[] {
    return [...this.#all.keys()];
  }

  /** Those of one target, or, for null, those with a handler. */
  of(worker: string | null): ReadonlyMap<string, RunnableJob> {
    return this.#of(worker);
  }

  /** These of them, as they are now. */
  only(names: readonly string[]): RunnableJobs {
    const chosen = new RunnableJobs();
    for (const [name, job] of this.#all) if (names.includes(name)) chosen.add(job);
    return chosen;
  }

  #of(worker: string | null): Map<string, RunnableJob> {
    const jobs = this.#byWorker.get(worker) ?? new Map<string, RunnableJob>();
    this.#byWorker.set(worker, jobs);
    return jobs;
  }
}

/** Null where neither a handler nor a target was named: the job is for others to execute. */
export function runnableAs(
  params: Pick<Basis, "config" | "ports" | "store" | "sends" | "bus" | "tracing"> & {
    readonly definition: JobDefinition;
    readonly around: Around;
    readonly run: Handler | undefined;
  },
): RunnableJob | null {
  const { definition, around, run, config, ports, store, sends, bus, tracing } = params;
  if (run) return { ...definition, run, around };
  const target = definition.worker;
  if (target === null) return null;
  return {
    ...definition,
    around,
    dispatch: dispatchTo({
      target,
      url: config.dispatch.targets.get(target)?.url ?? "",
      sends,
      clock: ports.clock,
      keepReply: (line) => store.keepReply(line),
      emit: bus.emit,
      tracing,
    }),
  };
}
