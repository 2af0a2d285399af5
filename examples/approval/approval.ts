// An order that a person approves: the run asks, waits three days at most, sends a reminder after the first, and holds
// no worker meanwhile. The person opens a link, which is in the mail and, as a log line of the run, in the dashboard. The
// answer is a signal; other programs may send it too: `POST /api/signals/order-approved`.

import type { Holdfast } from "holdfast";

export type Shop = {
  ask(order: string, link: string): Promise<void>;
  remind(order: string, link: string): Promise<void>;
  ship(order: string): Promise<{ parcel: string }>;
};

export const APPROVED = "order-approved";

export function approvals(holdfast: Holdfast, shop: Shop, url: string) {
  const job = holdfast.job("order", {
    async run({ order }: { order: string }, ctx) {
      // Only who has the link knows the key.
      const key = await ctx.step("key", () => crypto.randomUUID());
      const link = `${url}/approve/${key}`;
      await ctx.step("ask", async () => {
        ctx.log.info({ order }, `waits for an approval: ${link}`);
        await shop.ask(order, link);
      });
      let answer = await ctx.waitFor(APPROVED, { key, timeout: "1d", name: "first day" });
      if (answer === null) {
        await ctx.step("remind", () => shop.remind(order, link));
        answer = await ctx.waitFor(APPROVED, { key, timeout: "2d", name: "last days" });
      }
      if (answer?.value !== true) return { isShipped: false };
      const { parcel } = await ctx.step("ship", () => shop.ship(order));
      return { isShipped: true, parcel };
    },
  });

  /** What the link opens. A GET changes nothing, as mail programs open links to look at them. */
  async function page(request: Request): Promise<Response> {
    const key = new URL(request.url).pathname.split("/").at(-1) ?? "";
    if (request.method === "POST") {
      const value = (await request.formData()).get("answer") === "yes";
      // The first answer counts; another one is refused.
      const sent = await holdfast.signal(APPROVED, { key, value }).catch(() => null);
      return new Response(sent ? "Thank you." : "This order was answered before.");
    }
    const button = (answer: string) => `<button name="answer" value="${answer}">${answer}</button>`;
    const html = `<form method="post">Ship this order? ${button("yes")} ${button("no")}</form>`;
    return new Response(html, { headers: { "content-type": "text/html" } });
  }

  return { job, page };
}
