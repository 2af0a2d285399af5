// A database with very many runs for the page to show: most of them have ended, some have failed, some wait.

import { Holdfast, PermanentError } from "../../build/index.js";

const JOBS = ["check-listings", "market-study", "refresh-rates", "review-listing", "send-digest"];
const AT_ONCE = 5_000;
/** Every tenth waits until tomorrow. */
const WAITING = 10;
/** Of those that run, every fiftieth fails. */
const FAILING = 50;
const logger = { debug() {}, info() {}, warn() {}, error() {} };

/** Opens an instance on a database with this many runs, with no work left for today. */
export async function filled({ database, runs }) {
  const holdfast = new Holdfast({ database, synchronous: "NORMAL", logger });
  let ended = 0;
  const jobs = JOBS.map((name) =>
    holdfast.job(name, {
      retry: { attempts: 1 },
      run({ no }) {
        ended += 1;
        if (no % FAILING === 1) throw new PermanentError(`the market of ${no} does not answer`);
        return { no };
      },
    }),
  );
  for (let from = 0; from < runs; from += AT_ONCE) {
    const inputs = Array.from({ length: Math.min(AT_ONCE, runs - from) }, (_, no) => ({
      no: from + no,
      listing: `https://cars.example/nl/${from + no}`,
    }));
    const job = jobs[(from / AT_ONCE) % jobs.length];
    await job.enqueueMany(
      inputs.filter(({ no }) => no % WAITING === 0),
      { delay: "1d" },
    );
    await job.enqueueMany(inputs.filter(({ no }) => no % WAITING !== 0));
  }
  const due = runs - Math.ceil(runs / WAITING);
  await holdfast.start();
  while (ended < due || (await holdfast.queues.list()).some(({ running }) => running > 0))
    await new Promise((resolve) => setTimeout(resolve, 200));
  return holdfast;
}
