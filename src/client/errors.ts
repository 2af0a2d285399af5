// Declares the errors of the client: the server refused, no response arrived, or the worker must stop.

/** The server refused the call; `error` is its code, as on the wire. */
export class RequestRefusedError extends Error {
  override readonly name = "RequestRefusedError";
  /** The same code in upper case, as the library's own errors have it. */
  readonly code: string;
  readonly status: number;
  readonly error: string;
  readonly requestId: string | null;
  readonly problems: readonly { readonly field: string; readonly message: string }[];
  readonly retryAfterMs: number | null;

  constructor(refusal: {
    readonly status: number;
    readonly error: string;
    readonly detail: string;
    readonly requestId: string | null;
    readonly problems: readonly { readonly field: string; readonly message: string }[];
    readonly retryAfterMs: number | null;
  }) {
    super(refusal.detail);
    this.code = refusal.error.toUpperCase();
    this.status = refusal.status;
    this.error = refusal.error;
    this.requestId = refusal.requestId;
    this.problems = refusal.problems;
    this.retryAfterMs = refusal.retryAfterMs;
  }
}

/** No response arrived. `isUnknown`: the server may have carried out the call. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
  readonly code = "NO_ANSWER";

  constructor(
    what: string,
    readonly isUnknown: boolean,
    options: ErrorOptions,
  ) {
    super(
      isUnknown
        ? `${what}: no response arrived; the server may or may not have carried it out.`
        : `${what}: the server could not be reached; nothing was done.`,
      options,
    );
  }
}

/** The reason of `ctx.signal` when the worker must stop; a run that fails with it is retried. */
export class WorkerStoppedError extends Error {
  override readonly name = "WorkerStoppedError";
  readonly code = "WORKER_STOPPED";

  constructor() {
    super("The worker had to stop before the run had ended.");
  }
}
