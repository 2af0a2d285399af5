// Runs the child's side of measurements of items.

const stamp = () => Number(process.hrtime.bigint()) / 1e6;

/** @param {{ items?: string }} contestant */
export function itemActions(contestant) {
  let place;
  return {
    async openItems(params) {
      const { open } = await import(`./${contestant.items}`);
      place = await open(params);
    },

    /** `callers` loops, each waiting for its own item: a warm-up first, then for `ms`. */
    async itemsFor({ callers, warmMs, ms }) {
      const begin = stamp() + warmMs;
      const end = begin + ms;
      let count = 0;
      let made = 0;
      const caller = async () => {
        for (;;) {
          await place.item(`item-${made++}`, { listings: 7, found: "someone@example.org" });
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
