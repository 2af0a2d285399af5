// What `holdfast.job(…)` is given: the options of a job, and its handler.

import type { JobOptions } from "../core/job.js";
import type { InferOutput, StandardSchema } from "../core/schema.js";
import type { RunContext } from "./context.js";

/** Options of a job whose input is checked by a schema. */
export type SchemaJobOptions<Schema extends StandardSchema, Result> = Omit<JobOptions, "input"> & {
  readonly input: Schema;
  /** Left out: the job is enqueued here and executed elsewhere. */
  readonly run?: (input: InferOutput<Schema>, ctx: RunContext) => Result | Promise<Result>;
};

/** Options of a job whose input is taken as it is. */
export type PlainJobOptions<Input, Result> = Omit<JobOptions, "input"> & {
  readonly input?: undefined;
  readonly run?: (input: Input, ctx: RunContext) => Result | Promise<Result>;
};
