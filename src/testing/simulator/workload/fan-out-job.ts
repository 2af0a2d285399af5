// The job of a simulation that makes runs: what it asks for is the same at every attempt of a run, as
// far as chance goes, and it may fail after it has asked.

import type { RunContext } from "../../../worker/handler/context.js";
import type { BatchEntry } from "../../../worker/handler/fan-out.js";
import { mix } from "../random.js";

/** Of every kind, those whose loss is final most of all; few that kill their process, as others do, too. */
const CHILDREN = [
  ...["quick", "quick", "once", "once", "once", "once"],
  ...["flaky", "flaky", "wrong", "postponing", "rare", "poison"],
] as const;
const COUNT_MAX = 4;

export async function fan(ctx: RunContext, fate: number, luck: number): Promise<void> {
  const count = fate % (COUNT_MAX + 1);
  const entries = Array.from({ length: count }, (_, at): BatchEntry => {
    const draw = mix(fate, at);
    const job = CHILDREN[draw % CHILDREN.length] as string;
    // Few keys for many callers, so that some children are there already, live or ended.
    const key = draw % 5 === 0 ? { key: `child-${draw % 7}` } : {};
    return { job, input: { n: draw % 5 === 0 ? 0 : draw }, ...key };
  });
  await ctx.enqueueBatch(entries, { name: `batch-${fate % 2}`, then: "quick" });
  if (fate % 3 === 0)
    await ctx.enqueue("quick", { n: fate }, { key: `single-${fate % 50}` }).catch(ignoreKey);
  if (luck % 3 === 0) throw new Error("The service hung up after the batch was stored.");
}

/** Somebody else has the key with another input: that is for the caller to know. */
function ignoreKey(error: unknown): void {
  if ((error as { code?: string }).code !== "KEY_CONFLICT") throw error;
}
