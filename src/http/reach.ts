// Checks which jobs and queues a credential reaches. A limited credential opens claims, calls about claimed runs, enqueues and
// triggers for its own jobs and queues; every other route is closed to it.

import type { Holdfast } from "../holdfast.js";
import { serverInternals } from "../instance/server-internals.js";
import type { RemoteCaller } from "../remote/remote.js";
import { HttpError } from "./problem.js";
import type { Route } from "./wire/schemas.js";

/** The limits of a credential; a missing list limits nothing. */
export type Reach = {
  readonly jobs?: readonly string[];
  readonly queues?: readonly string[];
};

export function isLimited({ jobs, queues }: Reach): boolean {
  return jobs !== undefined || queues !== undefined;
}

/** Only the limits of a larger object. */
export function reachOf({ jobs, queues }: Reach): Reach {
  return { ...(jobs === undefined ? {} : { jobs }), ...(queues === undefined ? {} : { queues }) };
}

/** Refuses routes that do not check limits: they would show or do more than the credential allows. */
export function requireLimitable(reach: Reach, route: Route): void {
  if (route.scope === "open" || route.isLimitable || !isLimited(reach)) return;
  throw new HttpError({
    status: 403,
    error: "secret_limited",
    detail:
      "This secret is limited to jobs or queues: it claims, enqueues and triggers these, and opens nothing else.",
  });
}

export function requireJob({ jobs }: Reach, job: string): void {
  if (jobs === undefined || jobs.includes(job)) return;
  throw new HttpError({
    status: 403,
    error: "job_refused",
    detail: "This secret is not for that job.",
  });
}

export function requireQueue({ queues }: Reach, queue: string): void {
  if (queues === undefined || queues.includes(queue)) return;
  throw new HttpError({
    status: 403,
    error: "queue_refused",
    detail: "This secret is not for the queue of that run.",
  });
}

/**
 * A worker as the engine knows it: by its credential, its name and its limits. Credentials with different limits own different
 * names and runs, or a limited one would get at the claims and leases of others by their worker's name.
 */
export function callerOf(
  granted: Reach & { readonly by: string },
  instance: string | undefined,
): RemoteCaller {
  const { jobs = null, queues = null } = granted;
  const by = JSON.stringify([granted.by, jobs && [...jobs].sort(), queues && [...queues].sort()]);
  return { by, ...reachOf(granted), ...(instance === undefined ? {} : { instance }) };
}

/** Refuses a run of this job. `queue`: the run's own; without it the job's queue counts. */
export async function requireReach(
  { holdfast, granted }: { readonly holdfast: Holdfast; readonly granted: Reach },
  job: string,
  queue?: string | null,
): Promise<void> {
  requireJob(granted, job);
  if (granted.queues)
    requireQueue(granted, queue ?? (await holdfast[serverInternals].queueOf(job)));
}
