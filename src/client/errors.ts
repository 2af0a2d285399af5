// What goes wrong between a client and the server: it refused, no answer came, or the worker must end.

/** The server refused; `error` is its word for it, as on the wire. */
export class RequestRefusedError extends Error {
  override readonly name = "RequestRefusedError";
  /** As the library's own errors have it: upper case. */
  readonly code: string;
  readonly status: number;
  readonly error: string;
  readonly requestId: string | null;
  readonly problems: readonly { readonly field: string; readonly message: string }[];
  readonly retryAfterMs: number | null;

  constructor(answer: {
    readonly status: number;
    readonly error: string;
    readonly detail: string;
    readonly requestId: string | null;
    readonly problems: readonly { readonly field: string; readonly message: string }[];
    readonly retryAfterMs: number | null;
  }) {
    super(answer.detail);
    this.code = answer.error.toUpperCase();
    this.status = answer.status;
    this.error = answer.error;
    this.requestId = answer.requestId;
    this.problems = answer.problems;
    this.retryAfterMs = answer.retryAfterMs;
  }
}

/** No answer came. `isUnknown`: the server may have done what it was asked for. */
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
        ? `${what}: no answer came; whether it was done is not known.`
        : `${what}: the server could not be reached; nothing was done.`,
      options,
    );
  }
}

/** Why `ctx.signal` aborts when the worker must end; a run that fails by it is tried again. */
export class WorkerStoppedError extends Error {
  override readonly name = "WorkerStoppedError";
  readonly code = "WORKER_STOPPED";

  constructor() {
    super("The worker was told to stop before the run had ended.");
  }
}
