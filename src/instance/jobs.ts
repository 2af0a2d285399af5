// The jobs that this process knows: those its code declared, with who carries each one out, and, asked of
// the database when needed, those that others announced.

import { dispatchTo } from "../remote/dispatching.js";
import type { JobDefinition } from "../runs/rules/job.js";
import { UnknownJobError } from "../shared/errors.js";
import { encodeInput } from "../shared/json.js";
import { validateInput } from "../shared/schema.js";
import type { Store } from "../store/store.js";
import type { Handler, RunnableJob } from "../worker/attempt.js";
import type { HookChain } from "../worker/hooks.js";
import { NO_LIMITS } from "../worker/rules/limits.js";
import type { InstanceContext } from "./context.js";

export class AnnouncedJobs {
  /** Those that this process can see to. */
  readonly runnable = new LocalJobs();
  readonly #opened: (verb: string) => Promise<Store>;
  readonly #definitions = new Map<string, JobDefinition>();
  readonly #hookChains = new Map<string, HookChain>();
  /** Jobs that the database knows from this instance. */
  readonly #announced = new Set<string>();

  constructor(opened: (verb: string) => Promise<Store>) {
    this.#opened = opened;
  }

  add(definition: JobDefinition, hookChain: HookChain, runnable: RunnableJob | null): void {
    this.#definitions.set(definition.name, definition);
    this.#hookChains.set(definition.name, hookChain);
    if (runnable) this.runnable.add(runnable);
  }

  has(name: string): boolean {
    return this.#definitions.has(name);
  }

  declared(): Iterable<JobDefinition> {
    return this.#definitions.values();
  }

  hookChainOf(name: string): HookChain | undefined {
    return this.#hookChains.get(name);
  }

  /** The target that carries it out, if it was declared here and one does. */
  targetOf(name: string): string | null {
    return this.#definitions.get(name)?.worker ?? null;
  }

  async definitionOf(name: string): Promise<JobDefinition> {
    return this.#definitions.get(name) ?? this.#asAnnounced(name);
  }

  /** A schedule is stored with its job's name alone, so the database has to know the job. */
  async ensure(name: string): Promise<void> {
    if (this.#announced.has(name)) return;
    const definition = this.#definitions.get(name);
    if (definition) await (await this.#opened("schedules")).announceJobs([definition]);
    else await this.#asAnnounced(name);
    this.#announced.add(name);
  }

  /** The caller's value as an enqueue would store it. */
  async encode(job: string, input: unknown): Promise<string> {
    const schema = this.#definitions.get(job)?.schema;
    if (schema) await validateInput(schema, input);
    return encodeInput(input);
  }

  /** These of the runnable ones, or all; a name that is none of them is a mistake. */
  chosen(names: readonly string[] | null): LocalJobs {
    if (names === null) return this.runnable;
    for (const name of names)
      if (!this.runnable.has(name)) throw new UnknownJobError(name, this.runnable.names());
    return this.runnable.only(names);
  }

  async #asAnnounced(name: string): Promise<JobDefinition> {
    const store = await this.#opened("enqueue");
    const known = await store.announcedJobs();
    const found = known.find((job) => job.name === name);
    if (!found)
      throw new UnknownJobError(name, [
        ...new Set([...this.#definitions.keys(), ...known.map((job) => job.name)]),
      ]);
    const { limits = NO_LIMITS, inputSchema = null } = found;
    return {
      ...found,
      limits,
      inputSchema,
      retention: null,
      worker: null,
      schema: undefined,
      upcast: undefined,
    };
  }
}

// The jobs that this process can see to, by who carries them out: a handler here, or a target. More may
// come at any time; the maps that were handed out grow along.

export class LocalJobs {
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
  only(names: readonly string[]): LocalJobs {
    const chosen = new LocalJobs();
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
  params: Pick<InstanceContext, "config" | "ports" | "store" | "sends" | "bus" | "tracing"> & {
    readonly definition: JobDefinition;
    readonly hookChain: HookChain;
    readonly run: Handler | undefined;
  },
): RunnableJob | null {
  const { definition, hookChain, run, config, ports, store, sends, bus, tracing } = params;
  if (run) return { ...definition, run, hookChain };
  const target = definition.worker;
  if (target === null) return null;
  return {
    ...definition,
    hookChain,
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
