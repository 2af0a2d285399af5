// Types of what a handler stores while it runs, checked by the compiler and never run.

import {
  Holdfast,
  type ItemPage,
  type PostgresTx,
  type RunContext,
  type RunItem,
  type SqliteHandle,
} from "../../src/index.js";

/** Fails to compile unless both are the same type. */
function same<A>() {
  return <B>(
    ..._: [A] extends [B] ? ([B] extends [A] ? [] : [A, "is not", B]) : [A, "is not", B]
  ) => {};
}

const holdfast = new Holdfast({ database: "sqlite::memory:" });

holdfast.job("study", {
  async run(input: { markets: string[] }, ctx) {
    same<typeof ctx>()<RunContext>();
    const found = await ctx.item("a", async () => ({ count: input.markets.length }));
    same<typeof found>()<{ count: number }>();
    const maybe = await ctx.item("b", () => 7, {
      onError: "record",
      outcome: (value) => (value > 3 ? "MANY" : "FEW"),
    });
    same<typeof maybe>()<number | undefined>();
    const rows = await ctx.item("c", async (tx: PostgresTx) => (await tx.query("…", [1])).rows, {
      tx: true,
    });
    same<typeof rows>()<Record<string, unknown>[]>();
    const paid = await ctx.step("f", (tx: SqliteHandle) => tx.prepare("…").run({}).changes, {
      tx: true,
    });
    same<typeof paid>()<number | bigint>();
    // @ts-expect-error There is no such way.
    await ctx.item("d", () => 1, { onError: "ignore" });
    // @ts-expect-error An outcome is a text.
    await ctx.item("e", () => 1, { outcome: () => 1 });
    // @ts-expect-error A key is a text.
    await ctx.item(7, () => 1);
    const changed = await ctx.commit((tx: SqliteHandle) => tx.prepare("…").run({}).changes);
    same<typeof changed>()<number | bigint>();
    // Without a word about the database both kinds can be spoken to.
    const both = await ctx.commit(async (tx) => (await tx.query("…")).rowCount);
    same<typeof both>()<number>();
    await ctx.commit((tx) => tx.exec("…"), { on: {} });
    // @ts-expect-error There is no such option.
    await ctx.commit(() => 1, { in: {} });
  },
});

async function looks(id: string) {
  const run = await holdfast.runs.get(id);
  same<NonNullable<typeof run>["partial"]>()<boolean>();
  same<NonNullable<typeof run>["items"]["total"]>()<number>();
  const page = await holdfast.runs.items(id, { outcome: "failed", sort: "slowest", limit: 5 });
  same<typeof page>()<ItemPage>();
  same<(typeof page.items)[number]>()<RunItem>();
  // @ts-expect-error There is no such order.
  await holdfast.runs.items(id, { sort: "fastest" });
}
void looks;
