// The handlers of a simulation that store something while they run: one commits its work with its run,
// one does items, some of them with work of their own. What they find done by an earlier attempt, they tell.

import type { RunContext } from "../../../worker/handler/context.js";
import { writeCommit, writeItem } from "./user-tables.js";

const ITEMS = 4;

/** Takes a while, and stops when told. */
type Rest = () => Promise<void>;

/** The function may be called and rolled back: what counts is in the tables. */
export async function commitWork(ctx: RunContext, onWork: () => void): Promise<void> {
  await ctx.commit((tx) => {
    onWork();
    writeCommit(tx, ctx);
    return { fence: ctx.fence, attempt: ctx.attempt };
  });
}

export async function doItems(
  ctx: RunContext,
  params: { readonly luck: number; readonly rest: Rest; readonly onReplayed: () => void },
): Promise<void> {
  const { luck, rest, onReplayed } = params;
  for (let n = 0; n < ITEMS; n += 1) {
    const isTx = n % 2 === 1;
    const key = `${isTx ? "tx" : "plain"}-${n}`;
    let isCalled = false;
    await rest();
    await ctx.item(
      key,
      (tx) => {
        isCalled = true;
        if (isTx) writeItem(tx, ctx, key);
        if ((luck >> n) % 5 === 0) throw new Error("This item fails for now.");
        return ctx.fence;
      },
      { tx: isTx, onError: n === 2 ? "throw" : "record" },
    );
    if (!isCalled) onReplayed();
  }
}
