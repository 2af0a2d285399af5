// Runs the child's side of measurements of durable steps and sleeps.

const stamp = () => Number(process.hrtime.bigint()) / 1e6;

/** @param {{ steps?: string }} contestant */
export function stepActions(contestant) {
  let place;
  return {
    async openSteps(params) {
      const { open } = await import(`./${contestant.steps}`);
      place = await open(params);
    },

    /** `callers` loops, each waiting for its own step: a warm-up first, then for `ms`. */
    async stepsFor({ callers, warmMs, ms }) {
      await place.ready();
      const begin = stamp() + warmMs;
      const end = begin + ms;
      let count = 0;
      let made = 0;
      const caller = async () => {
        for (;;) {
          await place.step(made++, { listings: 7, found: "someone@example.org" });
          const now = stamp();
          if (now >= end) return;
          if (now >= begin) count++;
        }
      };
      await Promise.all(Array.from({ length: callers }, caller));
      await place.close();
      return { perSecond: (count / ms) * 1000 };
    },

    /** Every run sleeps so many times, a millisecond each. */
    async resume({ runs, rounds }) {
      await place.resume({ runs: Math.ceil(runs / 10), rounds: 1 });
      const begin = stamp();
      await place.resume({ runs, rounds });
      const ms = stamp() - begin;
      await place.close();
      return { perSecond: ((runs * rounds) / ms) * 1000 };
    },
  };
}
