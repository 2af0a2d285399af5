// Runs the child's side of measurements of locks.

const stamp = () => Number(process.hrtime.bigint()) / 1e6;

/** @param {import("./contestants.mjs").Contestant} contestant */
export function lockActions(contestant) {
  let place;
  return {
    async openLocks(params) {
      const { open } = await import(`./${contestant.locks.file}`);
      place = await open(params);
    },

    /** `callers` loops, each with a lock of its own: a warm-up first, then for `ms`. */
    async lockFor({ callers, warmMs, ms }) {
      const begin = stamp() + warmMs;
      const end = begin + ms;
      let count = 0;
      const caller = async (_, at) => {
        for (;;) {
          await place.lock(`lock-${at}`);
          const now = stamp();
          if (now >= end) return;
          if (now >= begin) count++;
        }
      };
      await Promise.all(Array.from({ length: callers }, caller));
      await place.close();
      return { perSecond: (count / ms) * 1000 };
    },
  };
}
