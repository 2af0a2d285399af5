// A nightly study of many markets: each market is an item, done once however often the run is tried again,
// with an outcome of its own. One market that fails does not take the others with it.

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
          // A market that fails is written down, and the run goes on; strict runs end and try again.
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
