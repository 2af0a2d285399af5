// Previews a schedule while it is typed.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { call } from "../api/call.js";
import { refusalText } from "../shared/refusal.js";
import { Ago } from "../shared/time.js";
import { timeText } from "../shared/zone.js";
import { type ScheduleDraft, whenOf } from "./draft.js";

const PAUSE_MS = 250;

export function DraftPreview({ draft }: { readonly draft: ScheduleDraft }) {
  const when = useSettled(JSON.stringify(whenOf(draft)));
  const preview = useQuery({
    queryKey: ["preview", when],
    queryFn: ({ signal }) =>
      call("previewDefinition", "POST /api/schedules/preview", {
        body: { ...(JSON.parse(when) as object), count: 10 },
        signal,
      }),
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 60_000,
  });
  const zone = draft.timezone;
  return (
    <aside aria-label="Preview" aria-live="polite" className="rounded-lg bg-sunken p-4 md:min-h-96">
      <h3 className="text-xs font-medium text-muted">The next ten</h3>
      {preview.error ? (
        <p className="mt-2 whitespace-pre-wrap text-failed-ink">{refusalText(preview.error)}</p>
      ) : (
        <>
          <p className="mt-1 font-medium">{preview.data?.description}</p>
          <ol className="mt-2 grid gap-1 text-xs">
            {preview.data?.ticks.map((at) => (
              <li key={at} className="flex justify-between gap-2">
                <span>{timeText(at, zone, "full")}</span>
                <span className="w-16 text-muted">
                  <Ago at={at} zone={zone} />
                </span>
              </li>
            ))}
          </ol>
          {preview.data?.ticks.length === 0 ? (
            <p className="mt-2 text-muted">It would never tick.</p>
          ) : null}
          {[...new Set([...(preview.data?.notes ?? []), ...(preview.data?.warnings ?? [])])].map(
            (note) => (
              <p key={note} className="mt-2 rounded bg-late/14 px-2 py-1 text-xs text-late-ink">
                {note}
              </p>
            ),
          )}
        </>
      )}
    </aside>
  );
}

/** The value after a short pause in typing. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [value]);
  return settled;
}
