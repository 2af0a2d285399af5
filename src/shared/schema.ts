// Validates inputs with schemas of zod, valibot, arktype and other libraries that implement Standard Schema v1
// (https://standardschema.dev). The interface is declared here, as its authors intend, so that no schema library is a
// dependency.

import { InputInvalidError, type InputIssue } from "./errors.js";
import { type PathSegment, pathText } from "./problems.js";

/** Any schema of any library that implements Standard Schema v1. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": StandardSchemaProps<Input, Output>;
}

export interface StandardSchemaProps<Input = unknown, Output = Input> {
  readonly version: 1;
  readonly vendor: string;
  readonly validate: (
    value: unknown,
  ) => StandardSchemaResult<Output> | Promise<StandardSchemaResult<Output>>;
  /** Exists for types only. */
  readonly types?: { readonly input: Input; readonly output: Output } | undefined;
}

export type StandardSchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardSchemaIssue[] };

export interface StandardSchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type that a caller gives, before defaults and transformations. */
export type InferInput<Schema extends StandardSchema> = NonNullable<
  Schema["~standard"]["types"]
>["input"];

/** The type that a handler gets, after defaults and transformations. */
export type InferOutput<Schema extends StandardSchema> = NonNullable<
  Schema["~standard"]["types"]
>["output"];

const ISSUE_COUNT_MAX = 100;
const ISSUE_LENGTH_MAX = 500;
const JSON_SCHEMA_LENGTH_MAX = 64 * 1024;

/** Whether a value is a schema that can validate. The schemas of some libraries are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  const isHolder = (typeof value === "object" && value !== null) || typeof value === "function";
  if (!isHolder || !("~standard" in value)) return false;
  const props: unknown = value["~standard"];
  return (
    typeof props === "object" &&
    props !== null &&
    "validate" in props &&
    typeof props.validate === "function"
  );
}

/**
 * Describes an input as JSON Schema in JSON text. Returns null where the library of the schema cannot describe it, or
 * where the description is too large for a form.
 */
export function jsonSchemaOf(schema: StandardSchema): string | null {
  try {
    const { jsonSchema } = schema["~standard"] as Partial<StandardJsonSchemaProps>;
    const text = JSON.stringify(jsonSchema?.input({ target: "draft-2020-12" }));
    return text === undefined || text.length > JSON_SCHEMA_LENGTH_MAX ? null : text;
  } catch {
    // Some schemas can validate but have no description: a transformation, a class.
    return null;
  }
}

/** Standard JSON Schema v1, which some libraries offer in addition. */
type StandardJsonSchemaProps = {
  readonly jsonSchema: {
    readonly input: (options: { readonly target: string }) => Record<string, unknown>;
  };
};

/**
 * Returns the schema's output for this input, or throws `InputInvalidError` with every issue and its path.
 * An error that the schema itself throws (a lookup in it may fail) is passed on unchanged.
 */
export async function validateInput<Schema extends StandardSchema>(
  schema: Schema,
  value: unknown,
  field = "input",
): Promise<InferOutput<Schema>> {
  return requireValid(await schema["~standard"].validate(value), field) as InferOutput<Schema>;
}

/** Returns the output of a finished validation, or throws its issues. */
export function requireValid<Output>(
  result: StandardSchemaResult<Output>,
  field = "input",
): Output {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.slice(0, ISSUE_COUNT_MAX).map((issue) => readIssue(issue, field));
  throw new InputInvalidError(field, issues);
}

function readIssue(issue: StandardSchemaIssue, field: string): InputIssue {
  const segments = (issue.path ?? []).map(segmentOf);
  return { path: pathText(field, segments), message: issue.message.slice(0, ISSUE_LENGTH_MAX) };
}

function segmentOf(segment: PropertyKey | { readonly key: PropertyKey }): PathSegment {
  return typeof segment === "object" ? segment.key : segment;
}
