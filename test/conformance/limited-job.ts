// Gives tests of limits a limited job, runs of it under keys, and the counts of held runs.

import type { JobOptions } from "../../src/runs/rules/job.js";
import type { NewRun } from "../../src/store/enqueue.js";
import type { Store } from "../../src/store/store.js";
import {
  type Limits,
  limitKeyOf,
  NO_LIMITS,
  resolveLimits,
} from "../../src/worker/rules/limits.js";
import { type Held, POLICY, type Scene } from "./scene.js";

export function limitsOf(options: Pick<JobOptions, "concurrency" | "rate">): Limits {
  return resolveLimits(options, (member) => member);
}

/** The job "study" under these limits, and the calls of a worker and a caller. */
export class LimitedJob {
  readonly #scene: Scene;
  readonly #limits: Limits;
  readonly job: string;

  private constructor(scene: Scene, limits: Limits, job: string) {
    this.#scene = scene;
    this.#limits = limits;
    this.job = job;
  }

  static async announce(
    scene: Scene,
    options: Pick<JobOptions, "concurrency" | "rate">,
    job = "study",
  ): Promise<LimitedJob> {
    const limits = limitsOf(options);
    await announceLimits(scene, limits, job);
    return new LimitedJob(scene, limits, job);
  }

  /** A run of it; `account` is its key. */
  run(account: unknown = "a", changes: Partial<NewRun> = {}): NewRun {
    const input = JSON.stringify({ account });
    const { job } = this;
    return this.#scene.run({ job, input, flow: limitKeyOf(this.#limits, input), ...changes });
  }

  async enqueued(
    count: number,
    account?: unknown,
    changes: Partial<NewRun> = {},
  ): Promise<NewRun[]> {
    const runs = Array.from({ length: count }, () => this.run(account, changes));
    await this.#scene.enqueue(...runs);
    return runs;
  }

  claim(limit = 100, store: Store = this.#scene.store): Promise<Held[]> {
    return this.#scene.claim({ limit, limited: "last", jobs: [this.job], store });
  }
}

export function announceLimits(
  scene: Scene,
  limits: Limits = NO_LIMITS,
  name = "study",
): Promise<void> {
  return scene.store.jobs.announce([
    { name, queue: "default", priority: 0, version: 1, policy: POLICY, limits },
  ]);
}
