// Types the options of `holdfast.job(…)`: the options of a job, its hooks, and its handler.

import type { InferInput, InferOutput, StandardSchema } from "../shared/schema.js";
import type { RunContext } from "../worker/handler/context.js";
import type { AroundOptions } from "../worker/hooks.js";
import type { JobOptions } from "./rules/job.js";

type JobHookOptions = Omit<JobOptions, "input"> & AroundOptions;

/** Options of a job whose input is checked by a schema. */
export type SchemaJobOptions<Schema extends StandardSchema, Result> = JobHookOptions & {
  readonly input: Schema & WithoutDate<InferInput<Schema>>;
  /** Left out: the job is enqueued here and executed by another process. */
  readonly run?:
    | ((input: InferOutput<Schema>, ctx: RunContext) => Result | Promise<Result>)
    | undefined;
};

/** Options of a job whose input is taken as it is. Where that can hold a Date, no options are right. */
export type PlainJobOptions<Input, Result> = JobHookOptions & {
  readonly input?: undefined;
  readonly run?:
    | (((input: Input, ctx: RunContext) => Result | Promise<Result>) & WithoutDate<Input>)
    | undefined;
} & (unknown extends WithoutDate<Input> ? unknown : { readonly run: WithoutDate<Input> });

/** How far into an input's type the compiler looks for a Date. */
type DepthMax = 6;

/** True, or true and false, if a value of this type can contain a Date. */
type HoldsDate<T, Depth extends 0[] = []> = unknown extends T
  ? false
  : Depth["length"] extends DepthMax
    ? false
    : T extends Date
      ? true
      : T extends string | number | boolean | bigint | symbol | null | undefined
        ? false
        : T extends readonly (infer Item)[]
          ? HoldsDate<Item, [...Depth, 0]>
          : { [Key in keyof T]-?: HoldsDate<T[Key], [...Depth, 0]> }[keyof T];

/**
 * Refuses an input with a Date in it. Inputs are stored as JSON, which turns a Date into text, so the
 * handler would get a string where its type says Date.
 */
export type WithoutDate<Input> =
  true extends HoldsDate<Input>
    ? "An input is stored as JSON, so a Date comes back as text: take a string, and make the Date in the handler or by a transform of the schema."
    : unknown;

/** The member `input` of a schedule: needed, unless the job takes null, which is the default. */
export type InputOption<Input> = unknown extends Input
  ? { readonly input?: Input | undefined }
  : null extends Input
    ? { readonly input?: Input | undefined }
    : undefined extends Input
      ? { readonly input?: Input | undefined }
      : { readonly input: Input };
