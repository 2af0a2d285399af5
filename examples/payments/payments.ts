// Payments through a bank that is sometimes busy, sometimes down, and sometimes refuses. Keys make a payment happen
// once however often it is requested; each kind of failure has its own handling.

import { Holdfast, PermanentError, RetryLater } from "holdfast";

export type Bank = (
  payment: { order: string; cents: number },
  idempotencyKey: string,
) => Promise<{ status: "paid" | "refused" | "closed"; reference: string }>;

export function newShop(database: string, bank: Bank) {
  const holdfast = new Holdfast({ database });

  const pay = holdfast.job("pay", {
    retry: { attempts: 5, delay: "50ms", factor: 2, max: "1s" },
    timeout: "30s",
    async run(input: { order: string; cents: number }, ctx) {
      // An error of the bank (a broken connection, a 503) is retried by the policy. Every attempt sends the same key,
      // so that the bank can recognise a repeat.
      const { status, reference } = await bank(input, ctx.idempotencyKey);
      if (status === "refused") throw new PermanentError("the bank refused the card");
      if (status === "closed") throw new RetryLater({ delay: "100ms" });
      return { reference };
    },
  });

  return {
    holdfast,
    /** Safe to call again after a time-out, a crash or a double click: one order, one payment. */
    pay: (order: string, cents: number) => pay.enqueue({ order, cents }, { key: `pay-${order}` }),
  };
}
