// The error of a run, with its stack folded below.

import type { Run } from "../api/wire.js";
import { CopyButton } from "../shared/copy.js";

type StoredError = NonNullable<Run["error"]>;

export function ErrorView({
  error,
  isFinal,
}: {
  readonly error: StoredError;
  readonly isFinal: boolean;
}) {
  const { code, name, message, stack } = error;
  return (
    <section
      aria-label="Error"
      className="overflow-hidden rounded-lg border border-failed/40 bg-failed/6"
    >
      <div className="flex items-start justify-between gap-3 px-4 py-3">
        <div className="min-w-0">
          <p className="text-xs text-failed-ink">
            {isFinal ? "Failed with" : "The last attempt ended with"} {name}
            {code === name ? "" : ` · ${code}`}
          </p>
          <p className="mt-0.5 font-medium whitespace-pre-wrap">{message}</p>
        </div>
        <CopyButton text={stack ?? message} what="the error" />
      </div>
      {stack === undefined ? null : (
        <details className="border-t border-failed/25">
          <summary className="px-4 py-2 text-xs text-muted">Stack</summary>
          <pre className="overflow-x-auto px-4 pb-3 font-mono text-xs leading-5 whitespace-pre-wrap">
            {stack}
          </pre>
        </details>
      )}
    </section>
  );
}
