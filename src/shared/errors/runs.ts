// Defines the exceptions about jobs and runs, and about the instances, keys and alerts beside them.

import { formatDuration } from "../duration.js";
import { listShort, quoteShort, suggest } from "../suggest.js";
import { causeText, HoldfastError, nameErrors } from "./base.js";

// ── inputs ───────────────────────────────────────────────────────────────────────────────────────

export type InputIssue = { readonly path: string; readonly message: string };

/** An input does not fit the schema of its job. */
export class InputInvalidError extends HoldfastError {
  readonly code = "INPUT_INVALID";
  constructor(
    readonly field: string,
    readonly issues: readonly InputIssue[],
  ) {
    super(`${field} is invalid: ${issuesText(issues)}`);
  }
}

const ISSUES_SHOWN_MAX = 10;

function issuesText(issues: readonly InputIssue[]): string {
  const shown = issues.slice(0, ISSUES_SHOWN_MAX).map(({ path, message }) => `${path}: ${message}`);
  const restCount = issues.length - shown.length;
  return restCount > 0 ? `${shown.join("; ")}; and ${restCount} more` : shown.join("; ");
}

/** An input is larger than a run may carry; `bytes` is a lower bound of its size. */
export class InputTooLargeError extends HoldfastError {
  readonly code = "INPUT_TOO_LARGE";
  constructor(
    readonly bytes: number,
    readonly limit: number,
  ) {
    super(
      `The input has at least ${bytes} bytes of JSON; the limit is ${limit}. Nothing was stored. ` +
        "Store the data in a file or a table of yours, and enqueue a reference to it.",
    );
  }
}

/** An input contains a value that JSON cannot carry unchanged; `path` says where. */
export class InputNotJsonError extends HoldfastError {
  readonly code = "INPUT_NOT_JSON";
  constructor(
    readonly path: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`${path} ${reason}. Nothing was stored.`, options);
  }
}

/** One member of a batch was refused, so nothing of the batch was stored. */
export class BatchRefusedError extends HoldfastError {
  readonly code = "BATCH_REFUSED";
  constructor(
    readonly index: number,
    cause: unknown,
  ) {
    super(
      `Member ${index} of the batch was refused${causeText(cause)}. Nothing of the batch was stored.`,
      { cause },
    );
  }
}

// ── jobs and runs ────────────────────────────────────────────────────────────────────────────────

/** The built-in jobs are off until the configuration lists what they may use. */
const OFF: ReadonlyMap<string, string> = new Map([
  [
    "shell",
    ' It is off: list its programs, for example new Holdfast({ shell: { commands: { backup: ["pg_dump", "app"] } } }).',
  ],
  [
    "http",
    ' It is off: list its origins, for example new Holdfast({ http: { origins: { api: "https://api.example.com" } } }).',
  ],
]);

/** No job of that name is registered here or announced by any instance. */
export class UnknownJobError extends HoldfastError {
  readonly code = "JOB_UNKNOWN";
  readonly suggestion: string | undefined;
  constructor(
    readonly job: string,
    readonly known: readonly string[] = [],
  ) {
    const suggestion = suggest(job, known);
    const hint = suggestion === undefined ? "" : ` Did you mean ${quoteShort(suggestion)}?`;
    const list = known.length === 0 ? "No job is known." : `Known: ${listShort(known)}.`;
    super(`No job is named ${quoteShort(job)}.${OFF.get(job) ?? hint} ${list}`);
    this.suggestion = suggestion;
  }
}

/** A job of that name already exists in this instance. */
export class DuplicateJobError extends HoldfastError {
  readonly code = "JOB_DUPLICATE";
  constructor(readonly job: string) {
    super(`A job named ${quoteShort(job)} is already registered; give this one another name.`);
  }
}

/** A remote worker cannot claim a job that instances execute themselves or send to a target. */
export class JobNotRemoteError extends HoldfastError {
  readonly code = "JOB_NOT_REMOTE";
  constructor(readonly job: string) {
    super(
      `Job ${quoteShort(job)} has a handler or a target of its own: remote workers cannot claim its runs. ` +
        "Declare it without run and worker to leave it to them.",
    );
  }
}

/** The key already belongs to a run with another input. */
export class KeyConflictError extends HoldfastError {
  readonly code = "KEY_CONFLICT";
  readonly job: string;
  readonly key: string;
  readonly runId: string;
  constructor({ job, key, runId }: { job: string; key: string; runId: string }) {
    super(
      `Key ${quoteShort(key)} of job ${quoteShort(job)} belongs to run ${runId}, which has another ` +
        "input. Nothing was stored. Use another key for other work.",
    );
    this.job = job;
    this.key = key;
    this.runId = runId;
  }
}

/** There is no run of that id: it never existed, or it was pruned. */
export class RunNotFoundError extends HoldfastError {
  readonly code = "RUN_NOT_FOUND";
  constructor(readonly runId: string) {
    super(`There is no run ${quoteShort(runId)}: it never existed, or it was pruned.`);
  }
}

/** Several run ids begin or end with this fragment. */
export class RunAmbiguousError extends HoldfastError {
  readonly code = "RUN_AMBIGUOUS";
  constructor(
    readonly fragment: string,
    /** At most ten run ids. */
    readonly candidates: readonly string[],
    readonly hasMore: boolean,
  ) {
    const more = hasMore ? ", and more" : "";
    super(
      `${quoteShort(fragment)} is the beginning or the end of several run ids: ${candidates.join(", ")}${more}. Give more of the id.`,
    );
  }
}

/** The run had not ended when the caller stopped waiting; the run itself goes on. */
export class WaitTimeoutError extends HoldfastError {
  readonly code = "WAIT_TIMEOUT";
  constructor(
    readonly runId: string,
    readonly timeoutMs: number,
  ) {
    super(`Run ${runId} had not ended after ${formatDuration(timeoutMs)}; it goes on.`);
  }
}

// ── alerts, named keys and instances ─────────────────────────────────────────────────────────────

/** There is no alert of that id: it never existed, or it was pruned. */
export class AlertNotFoundError extends HoldfastError {
  readonly code = "ALERT_NOT_FOUND";
  constructor(readonly alert: string) {
    super(`There is no alert ${quoteShort(alert)}: it never existed, or it was pruned.`);
  }
}

/** Several alert ids begin or end with this fragment. */
export class AlertAmbiguousError extends HoldfastError {
  readonly code = "ALERT_AMBIGUOUS";
  constructor(
    readonly fragment: string,
    /** At most ten alert ids. */
    readonly candidates: readonly string[],
    readonly hasMore: boolean,
  ) {
    const more = hasMore ? ", and more" : "";
    super(
      `${quoteShort(fragment)} is the beginning or the end of several alert ids: ${candidates.join(", ")}${more}. Give more of the id.`,
    );
  }
}

/** There is no named key of that name: it never existed, was revoked, or expired long ago. */
export class KeyNotFoundError extends HoldfastError {
  readonly code = "KEY_NOT_FOUND";
  constructor(readonly key: string) {
    super(
      `There is no key ${quoteShort(key)}: it never existed, was revoked, or expired long ago.`,
    );
  }
}

/** Another named key has that name. */
export class KeyTakenError extends HoldfastError {
  readonly code = "KEY_TAKEN";
  constructor(readonly key: string) {
    super(`There is a key ${quoteShort(key)} already; revoke it first, or choose another name.`);
  }
}

/** There is no instance of that id: it never existed, or it was pruned. */
export class InstanceNotFoundError extends HoldfastError {
  readonly code = "INSTANCE_NOT_FOUND";
  constructor(readonly instance: string) {
    super(
      `There is no instance ${quoteShort(instance)}; \`holdfast instances list\` shows those there are.`,
    );
  }
}

/** Several instances match a part of an id; nothing was done. */
export class InstanceAmbiguousError extends HoldfastError {
  readonly code = "INSTANCE_AMBIGUOUS";
  constructor(
    readonly fragment: string,
    /** At most ten instance ids. */
    readonly candidates: readonly string[],
    readonly hasMore: boolean,
  ) {
    const more = hasMore ? ", and more" : "";
    super(
      `${quoteShort(fragment)} is a part of several instance ids: ${candidates.join(", ")}${more}. Give more of the id.`,
    );
  }
}

/** A live instance of another owner already has the name of this remote worker. */
export class InstanceTakenError extends HoldfastError {
  readonly code = "INSTANCE_TAKEN";
  constructor(readonly instance: string) {
    super(
      `The name ${quoteShort(instance)} belongs to another live instance; nothing was done. Give the worker a name of its own.`,
    );
  }
}

/** A verb was called after `stop()`. */
export class StoppedError extends HoldfastError {
  readonly code = "STOPPED";
  constructor(readonly verb: string) {
    super(`${verb} was called after stop(); nothing was done. Make a new Holdfast to go on.`);
  }
}

nameErrors({
  InputInvalidError,
  InputTooLargeError,
  InputNotJsonError,
  BatchRefusedError,
  UnknownJobError,
  DuplicateJobError,
  JobNotRemoteError,
  KeyConflictError,
  RunNotFoundError,
  RunAmbiguousError,
  WaitTimeoutError,
  AlertNotFoundError,
  AlertAmbiguousError,
  KeyNotFoundError,
  KeyTakenError,
  InstanceNotFoundError,
  InstanceAmbiguousError,
  InstanceTakenError,
  StoppedError,
});
