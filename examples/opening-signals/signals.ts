// Opening signals, refreshed from an HTTP source into a table. The schedule is the lock: while a run of it is live, no
// other caller starts one, and its lease ends by itself if the process is gone.

import { type Holdfast, PermanentError } from "holdfast";

export const REFRESH = "refresh_opening_signals";

export type Signal = { id: string; title: string; city: string; score: number };

/** An update does not touch `first_seen_at`; a trigger sees to that too. */
const UPSERT = `
  insert into opening_signals (id, title, city, score) values ($1, $2, $3, $4)
  on conflict (id) do update set title = excluded.title, city = excluded.city, score = excluded.score,
    last_seen_at = excluded.last_seen_at`;

export function openingSignals(holdfast: Holdfast, sourceUrl: string): void {
  const refresh = holdfast.job(REFRESH, {
    lease: "5m",
    timeout: "5m",
    async run(_: unknown, ctx) {
      const signals = await fetchSignals(sourceUrl, ctx.signal);
      // The signals, the end of the run and the next time are one transaction.
      await ctx.commit((tx) => {
        for (const { id, title, city, score } of signals)
          tx.query(UPSERT, [id, title, city, score]);
        return { stored: signals.length };
      });
    },
  });
  holdfast.schedule(REFRESH, refresh, { every: "10m..15m", afterFailure: "20m..40m" });
}

/** A source that fails or hangs is asked again by the schedule, after its own pause: `PermanentError`. */
async function fetchSignals(url: string, signal: AbortSignal): Promise<Signal[]> {
  try {
    const response = await fetch(url, { signal });
    if (!response.ok) throw new Error(`the source answered ${response.status}`);
    return ((await response.json()) as { signals: Signal[] }).signals;
  } catch (cause) {
    throw new PermanentError(`no signals: ${cause}`, { cause });
  }
}
