// A nightly study of many markets: each market is an item, done once however often the run is retried, with an outcome
// of its own. A market that fails does not affect the others.

import { Holdfast } from "holdfast";

export type Look = (market: string) => Promise<{ listings: number }>;

export function newStudies(database: string, look: Look) {
  const holdfast = new Holdfast({ database });

  const study = holdfast.job("market-study", {
    retry: { attempts: 3, delay: "50ms" },
    async run({ markets, isStrict }: { markets: string[]; isStrict: boolean }, ctx) {
      let listings = 0;
      for (const market of markets) {
        const found = await ctx.item(market, () => look(market), {
          // A failed market is recorded, and the run goes on; a strict run ends and is retried.
          onError: isStrict ? "throw" : "record",
          outcome: (value) => (value.listings > 0 ? "OPPORTUNITIES" : "NOTHING"),
        });
        listings += found?.listings ?? 0;
      }
      return { listings };
    },
  });

  return { holdfast, study };
}
