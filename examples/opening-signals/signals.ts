// Opening signals, refreshed from an HTTP source into a table. The schedule is the lock: while a run of it
// is live, nobody else starts one, and its lease ends by itself if the process is gone.

import { type Holdfast, PermanentError } from "holdfast";
import type { AppDatabase, Statement } from "../shared/database.js";

export const REFRESH = "refresh_opening_signals";

export type Signal = { id: string; title: string; city: string; score: number };

/** Whatever the source sends again is updated; when it was first seen is the database's own affair. */
const UPSERT = `
  insert into opening_signals (id, title, city, score) values ($1, $2, $3, $4)
  on conflict (id) do update set title = excluded.title, city = excluded.city, score = excluded.score,
    last_seen_at = excluded.last_seen_at`;

export function openingSignals(
  holdfast: Holdfast,
  { db, sourceUrl }: { readonly db: AppDatabase; readonly sourceUrl: string },
) {
  const refresh = holdfast.job(REFRESH, {
    lease: "5m",
    timeout: "5m",
    async run(_: unknown, ctx) {
      const signals = await fetchSignals(sourceUrl, ctx.signal);
      const statements = signals.map(
        ({ id, title, city, score }): Statement => [UPSERT, [id, title, city, score]],
      );
      // The signals, the end of the run and the next time are one transaction.
      await ctx.commit((tx) => db.within(tx, statements, { stored: signals.length }));
    },
  });

  holdfast.schedule(REFRESH, refresh, { every: "10m..15m", afterFailure: "20m..40m" });
  return { refresh };
}

/** A source that fails or hangs is asked again by the schedule, after its own pause (`PermanentError`). */
async function fetchSignals(url: string, signal: AbortSignal): Promise<Signal[]> {
  try {
    const response = await fetch(url, { signal });
    if (!response.ok) throw new Error(`the source answered ${response.status}`);
    return ((await response.json()) as { signals: Signal[] }).signals;
  } catch (error) {
    throw new PermanentError(`no signals: ${(error as Error).message}`, { cause: error });
  }
}
