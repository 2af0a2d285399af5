// Throughput against processes: the drain of the benchmark with 1, 2, 4 and 8 workers, in interleaved rounds beside
// graphile-worker at its best. Rates drift with the machine; the ratio of one round is what counts.

import { contestantNamed } from "../contestants.mjs";
import { postgresPlaces } from "../places.mjs";
import { drainScenario } from "../scenarios/drain.mjs";

const COUNTS = [1, 2, 4, 8];
const NAMES = ["holdfast", "graphile-worker"];
const SIZES = { drain: 100_000, warm: 5000 };

const median = (all) => [...all].sort((a, b) => a - b)[all.length >> 1];

export async function processesCurve({ serverUrl, rounds, say }) {
  const places = postgresPlaces(serverUrl);
  const samples = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const workers of COUNTS) {
      const { measure } = drainScenario({
        engines: ["postgres"],
        workers,
        state: (sizes) => ({ pending: sizes.drain }),
        countOf: (sizes) => sizes.drain,
        waitUntilSettled: true,
      });
      const rates = {};
      const turns = round % 2 === 0 ? NAMES : [...NAMES].reverse();
      for (const name of turns) {
        const contestant = contestantNamed(name);
        rates[name] = (await measure({ contestant, places, sizes: SIZES })).perSecond;
      }
      samples.push({ workers, ...rates, ratio: rates.holdfast / rates["graphile-worker"] });
      say(JSON.stringify(samples.at(-1)));
    }
  }
  await places.close();
  const figures = COUNTS.map((workers) => {
    const of = (figure) =>
      samples.filter((each) => each.workers === workers).map((each) => each[figure]);
    return {
      workers,
      ...Object.fromEntries(NAMES.map((name) => [name, Math.round(median(of(name)))])),
      ratio: median(of("ratio")),
      ratios: of("ratio"),
    };
  });
  const line = (name) => ({ name, points: figures.map((row) => [row.workers, row[name]]) });
  return {
    figures,
    pictures: {
      processes: {
        title: "Drain of 100,000 runs that do nothing, against worker processes",
        note: "Two cores for the server and all processes together: more than two share them.",
        xName: "worker processes",
        yName: "runs/s",
        lines: NAMES.map(line),
      },
    },
  };
}
