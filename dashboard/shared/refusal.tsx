// Shows an error once, with the next step.

import { Refused } from "../api/call.js";

export function RefusalNote({
  error,
  retry,
}: {
  readonly error: unknown;
  readonly retry?: () => void;
}) {
  const { title, detail, problems, requestId } = describe(error);
  return (
    <div role="alert" className="rounded-lg border border-failed/40 bg-failed/8 px-4 py-3">
      <p className="font-medium text-failed-ink">{title}</p>
      <p className="mt-0.5 whitespace-pre-wrap">{detail}</p>
      {problems.length > 1 ? (
        <ul className="mt-1 list-disc pl-5">
          {problems.map(({ field, message }) => (
            <li key={field + message}>
              <span className="font-mono text-xs">{field}</span>: {message}
            </li>
          ))}
        </ul>
      ) : null}
      <p className="mt-1 text-xs text-muted">
        {requestId === null ? null : `The log has details under the request id ${requestId}.`}
        {retry === undefined ? null : (
          <button type="button" className="link ml-2" onClick={retry}>
            Try again
          </button>
        )}
      </p>
    </div>
  );
}

function describe(error: unknown) {
  if (!(error instanceof Refused))
    return { title: "The page failed", detail: String(error), problems: [], requestId: null };
  const { status, error: code, message, problems, requestId } = error;
  const titles: Record<number, string> = {
    0: "No response",
    400: "Invalid request",
    401: "You are not logged in",
    403: "You may not do this",
    404: "Not found",
    409: "It was changed in the meantime, or its state does not allow this",
    429: "Too many tries",
    503: "The database cannot be reached",
  };
  const hint = status === 0 ? " The page goes on by itself when it is back." : "";
  return {
    title: code.endsWith("_ambiguous")
      ? "Several ids match"
      : (titles[status] ?? "The server failed"),
    detail: message + hint,
    problems,
    requestId,
  };
}

/** For a line under a field, or a toast. */
export function refusalText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
