// What `holdfast.job(…)` is given: the options of a job, what surrounds it, and its handler.

import type { JobOptions } from "../core/job.js";
import type { InferOutput, StandardSchema } from "../core/schema.js";
import type { AroundOptions } from "./around.js";
import type { RunContext } from "./context.js";

type AroundJobOptions = Omit<JobOptions, "input"> & AroundOptions;

/** Options of a job whose input is checked by a schema. */
export type SchemaJobOptions<Schema extends StandardSchema, Result> = AroundJobOptions & {
  readonly input: Schema;
  /** Left out: the job is enqueued here and executed elsewhere. */
  readonly run?: (input: InferOutput<Schema>, ctx: RunContext) => Result | Promise<Result>;
};

/** Options of a job whose input is taken as it is. */
export type PlainJobOptions<Input, Result> = AroundJobOptions & {
  readonly input?: undefined;
  readonly run?: (input: Input, ctx: RunContext) => Result | Promise<Result>;
};
