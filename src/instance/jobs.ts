// Keeps the jobs that this process knows: those that its code declared, with the handler or target that executes each,
// and those that other instances announced, which it reads from the database when needed.

import { dispatchTo } from "../remote/dispatching.js";
import { claimedSteps, NO_STEPS, type RemoteSteps } from "../remote/remote-steps.js";
import type { JobDefinition } from "../runs/rules/job.js";
import { UnknownJobError } from "../shared/errors.js";
import { encodeInput } from "../shared/json.js";
import { validateInput } from "../shared/schema.js";
import type { Store } from "../store/store.js";
import type { Handler, RunnableJob } from "../worker/attempt.js";
import { type AttemptView, isFirstGrant } from "../worker/attempt-view.js";
import type { HookChain } from "../worker/hooks.js";
import { NO_LIMITS } from "../worker/rules/limits.js";
import type { InstanceContext } from "./context.js";

export class AnnouncedJobs {
  /** The jobs that this process can execute or dispatch. */
  readonly runnable = new LocalJobs();
  readonly #opened: (verb: string) => Promise<Store>;
  readonly #definitions = new Map<string, JobDefinition>();
  readonly #hookChains = new Map<string, HookChain>();
  /** Jobs that this instance has announced to the database, or found there. */
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

  /** The target that executes a job, if this process declared the job with one. */
  targetOf(name: string): string | null {
    return this.#definitions.get(name)?.worker ?? null;
  }

  async definitionOf(name: string): Promise<JobDefinition> {
    return this.#definitions.get(name) ?? this.#asAnnounced(name);
  }

  /** Announces a job that a schedule names: the schedule stores only the name, so the database has to know the job. */
  async ensure(name: string): Promise<void> {
    if (this.#announced.has(name)) return;
    const definition = this.#definitions.get(name);
    if (definition) await (await this.#opened("schedules")).jobs.announce([definition]);
    else await this.#asAnnounced(name);
    this.#announced.add(name);
  }

  /** Validates and encodes an input as an enqueue would. */
  async encode(job: string, input: unknown): Promise<string> {
    const schema = this.#definitions.get(job)?.schema;
    if (schema) await validateInput(schema, input);
    return encodeInput(input);
  }

  /** The runnable jobs of these names, or all for null; throws for a name that is not runnable. */
  chosen(names: readonly string[] | null): LocalJobs {
    if (names === null) return this.runnable;
    for (const name of names)
      if (!this.runnable.has(name)) throw new UnknownJobError(name, this.runnable.names());
    return this.runnable.only(names);
  }

  async #asAnnounced(name: string): Promise<JobDefinition> {
    const store = await this.#opened("enqueue");
    const known = await store.jobs.list();
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

// ── the jobs that this process can execute or dispatch ──────────────────────────────────────────

/** Jobs by their executor: a local handler, or a target. Jobs that are added later appear in maps returned earlier. */
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

  /** The jobs of one target, or, for null, the jobs with a local handler. */
  of(worker: string | null): ReadonlyMap<string, RunnableJob> {
    return this.#of(worker);
  }

  /** A copy with these jobs only; jobs that are added later are not in it. */
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

/** Returns null for a job without handler and target: other instances or remote workers execute it. */
export function runnableAs(
  params: Pick<
    InstanceContext,
    "config" | "ports" | "store" | "sends" | "bus" | "tracing" | "meters"
  > & {
    readonly definition: JobDefinition;
    readonly hookChain: HookChain;
    readonly run: Handler | undefined;
  },
): RunnableJob | null {
  const { definition, hookChain, run, config, ports, store, sends, bus, tracing, meters } = params;
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
      keepReply: (line) => store.logs.keepReply(line),
      stepsOf: (attempt) => storedBefore(attempt, { store, ports, meters }),
      emit: bus.emit,
      tracing,
    }),
  };
}

/** What goes with a dispatch, and tells how late a run goes on that has slept. */
async function storedBefore(
  attempt: AttemptView,
  { store, ports, meters }: Pick<InstanceContext, "store" | "ports" | "meters">,
): Promise<RemoteSteps> {
  const { run, claim } = attempt;
  if (isFirstGrant(attempt)) return NO_STEPS;
  const { wokenAt, ...stored } = await claimedSteps(store, { id: run.id, fence: claim.fence }, run);
  const wallMs = ports.clock.wallMs();
  if (run.laters > 0 && wokenAt !== null)
    meters.runStarted({ job: claim.job, dueAt: wokenAt, wallMs });
  return stored;
}
