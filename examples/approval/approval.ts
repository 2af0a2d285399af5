// An order that a person approves: the run asks, waits three days at most, sends a reminder after the first, and holds
// no worker meanwhile. The approval is a signal, for example from a link: `POST /api/signals/order-approved`.

import type { Holdfast } from "holdfast";

export type Shop = {
  ask(order: string): Promise<void>;
  remind(order: string): Promise<void>;
  ship(order: string): Promise<{ parcel: string }>;
};

export const APPROVED = "order-approved";

export function approvals(holdfast: Holdfast, shop: Shop) {
  return holdfast.job("order", {
    async run({ order }: { order: string }, ctx) {
      const answered = { key: order };
      await ctx.step("ask", () => shop.ask(order));
      let answer = await ctx.waitFor(APPROVED, { ...answered, timeout: "1d", name: "first day" });
      if (answer === null) {
        await ctx.step("remind", () => shop.remind(order));
        answer = await ctx.waitFor(APPROVED, { ...answered, timeout: "2d", name: "last days" });
      }
      if (answer?.value !== true) return { isShipped: false };
      const { parcel } = await ctx.step("ship", () => shop.ship(order));
      return { isShipped: true, parcel };
    },
  });
}
