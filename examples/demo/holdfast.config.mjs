// A small print shop: customers come, photos are resized, cards charged, parcels handed to couriers.
// `npm start` runs it. Stop it with Ctrl-C and start it again: it goes on where it was.

import { Holdfast } from "holdfast";
import {
  callCourier,
  chargeCard,
  closeTheShop,
  countTheTill,
  resizePhoto,
  waterThePlants,
  writeReport,
} from "./shop.mjs";

const holdfast = new Holdfast({ retention: "1d" });

const resize = holdfast.job("resize-photo", { run: resizePhoto });

const charge = holdfast.job("charge-card", {
  retry: { attempts: 4, delay: "500ms" },
  run: chargeCard,
});

const courier = holdfast.job("call-courier", { run: callCourier });

const report = holdfast.job("write-report", { timeout: "1m", priority: -10, run: writeReport });

const customers = holdfast.job("customer", {
  /** @param {{ number: number }} input */
  async run({ number }) {
    // Keys make each of these happen once, also when this attempt is cut short and repeated.
    const key = `order-${number}`;
    await resize.enqueue({ order: number }, { key });
    await charge.enqueue({ order: number }, { key, priority: 10 });
    if (number % 4 === 0) await courier.enqueue({ order: number }, { key, delay: "1s" });
    if (number % 8 === 1) await report.enqueue({ upTo: number }, { key });
    const next = number + 1;
    await customers.enqueue({ number: next }, { key: `customer-${next}`, delay: "1s" });
  },
});

// Schedules: each tick of theirs is in the ledger; in this folder `npx holdfast schedules
// show count-the-till` reads it.
const till = holdfast.job("count-the-till", { run: countTheTill });
holdfast.schedule("count-the-till", till, { cron: "*/10 * * * * *" });
holdfast.schedule("water-the-plants", holdfast.job("water-the-plants", { run: waterThePlants }), {
  every: "15s..25s",
});
holdfast.schedule("close-the-shop", holdfast.job("close-the-shop", { run: closeTheShop }), {
  cron: "0 18 * * mon-sat",
  timezone: "Europe/Paris",
  missed: { run: "latest", within: "6h" },
});

// The first customer. The key makes loading this file again, from whatever command, harmless; and a
// command that only looks, on a database that does not exist, has nobody to send.
customers.enqueue({ number: 1 }, { key: "customer-1" }).catch(() => {});

export default holdfast;
