// Defines the exceptions of durable steps and waits.

import { formatDuration } from "../duration.js";
import { quoteShort } from "../suggest.js";
import { HoldfastError, nameErrors } from "./base.js";

/** A name was used while the first call of that name had not ended. */
export class StepNameOpenError extends HoldfastError {
  readonly code = "STEP_NAME_OPEN";
  constructor(readonly step: string) {
    super(
      `The name ${quoteShort(step)} is in use by a step or wait that has not ended. Give each its own, ` +
        'such as { name: "reminder" }.',
    );
  }
}

/** A step or wait of this name was stored as something else. */
export class StepChangedError extends HoldfastError {
  readonly code = "STEP_CHANGED";
  constructor(
    readonly step: string,
    readonly stored: string,
    readonly asked: string,
  ) {
    super(
      `${quoteShort(step)} was stored as ${stored}, and the handler asked for ${asked}. Give what is new another ` +
        "name; runs that began with the old code keep what they stored.",
    );
  }
}

/** A wait was begun inside of the function of a step, an item or a commit. */
export class WaitInStepError extends HoldfastError {
  readonly code = "WAIT_IN_STEP";
  constructor(
    readonly verb: string,
    readonly inside: string,
  ) {
    super(
      `${verb} was called inside of the function of ${inside}, which cannot be suspended. Call it before or after.`,
    );
  }
}

/** A step was begun inside of the function of a step, an item or a commit. */
export class StepNestedError extends HoldfastError {
  readonly code = "STEP_NESTED";
  constructor(readonly inside: string) {
    super(
      `ctx.step was called inside of the function of ${inside}. Steps do not nest: call one after the other.`,
    );
  }
}

/** The run has as many steps and waits as it may have. */
export class StepsTooManyError extends HoldfastError {
  readonly code = "STEPS_TOO_MANY";
  constructor(
    readonly runId: string,
    readonly limit: number,
  ) {
    super(
      `Run ${runId} has ${limit} steps and waits, which is the limit. Use ctx.item for many small units of work, or ` +
        "ctx.call to give a part to a run of its own.",
    );
  }
}

/** The value of a step, or the result of a called run, is too large; `bytes` is a lower bound of its size. */
export class ResultTooLargeError extends HoldfastError {
  readonly code = "RESULT_TOO_LARGE";
  constructor(
    readonly step: string,
    readonly bytes: number,
    readonly limit: number,
  ) {
    super(
      `${quoteShort(step)} returned at least ${bytes} bytes of JSON; the limit is ${limit}. Store the data outside ` +
        "and return a reference to it.",
    );
  }
}

/** The value of a step contains something that JSON cannot carry; `path` says where. */
export class StepNotJsonError extends HoldfastError {
  readonly code = "STEP_NOT_JSON";
  constructor(
    readonly step: string,
    readonly path: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`Step ${quoteShort(step)}: ${path} ${reason}. Its value was not stored.`, options);
  }
}

/** The run has received this signal already. */
export class SignalTakenError extends HoldfastError {
  readonly code = "SIGNAL_TAKEN";
  constructor(
    readonly signal: string,
    readonly key: string,
  ) {
    super(
      `The run has received the signal ${quoteShort(signal)} with the key ${quoteShort(key)} already; it has one value. ` +
        "Keep the first one, or wait for another key.",
    );
  }
}

/** Another value was stored for this signal and key before, and counts. */
export class SignalConflictError extends HoldfastError {
  readonly code = "SIGNAL_CONFLICT";
  constructor(
    readonly signal: string,
    readonly key: string,
    readonly keepMs: number,
  ) {
    super(
      `The signal ${quoteShort(signal)} with the key ${quoteShort(key)} was sent with another value before. The first ` +
        `value counts for ${formatDuration(keepMs)}; send another key for another fact.`,
    );
  }
}

/** A called run failed or was cancelled. */
export class ChildFailedError extends HoldfastError {
  readonly code = "CHILD_FAILED";
  constructor(
    /** The id of the called run. */
    readonly childId: string,
    readonly status: "failed" | "cancelled",
    /** Why it failed, as its run has it. */
    readonly error: {
      readonly code: string;
      readonly name: string;
      readonly message: string;
    } | null,
  ) {
    const why = error === null ? "" : `: ${error.message}`;
    super(
      status === "failed"
        ? `The called run ${childId} failed${why}`
        : `The called run ${childId} was cancelled.`,
    );
  }
}

/** The run is being suspended: everything that its handler has open is a wait. Its handler begins again when one ends. */
export class SuspendedError extends HoldfastError {
  readonly code = "SUSPENDED";
  constructor(readonly runId: string) {
    super(
      `Run ${runId} is suspended until one of its waits ends; its handler then begins at the top.`,
    );
  }
}

nameErrors({
  StepNameOpenError,
  StepChangedError,
  WaitInStepError,
  StepNestedError,
  StepsTooManyError,
  ResultTooLargeError,
  StepNotJsonError,
  SignalTakenError,
  SignalConflictError,
  ChildFailedError,
  SuspendedError,
});
