// The job of a simulation that makes runs: what it asks for is the same at every attempt of a run, as
// far as chance goes, and it may fail after it has asked.

import type { RunContext } from "../../engine/context.js";
import type { BatchEntry } from "../../engine/fan-out.js";
import { mix } from "./draw.js";

/** Children of every kind, the quick ones most of all; nothing that kills its process. */
const CHILDREN = ["quick", "quick", "flaky", "wrong", "once", "postponing", "rare"] as const;
const COUNT_MAX = 6;

export async function fan(ctx: RunContext, fate: number, luck: number): Promise<void> {
  const count = fate % (COUNT_MAX + 1);
  const entries = Array.from({ length: count }, (_, at): BatchEntry => {
    const draw = mix(fate, at);
    const job = CHILDREN[draw % CHILDREN.length] as string;
    // Few keys for many callers, so that some children are there already, live or ended.
    const key = draw % 5 === 0 ? { key: `child-${draw % 7}` } : {};
    return { job, input: { n: draw % 5 === 0 ? 0 : draw }, ...key };
  });
  // biome-ignore lint/suspicious/noThenProperty: the name of the option.
  await ctx.enqueueBatch(entries, { name: `batch-${fate % 2}`, then: "quick" });
  if (fate % 3 === 0)
    await ctx.enqueue("quick", { n: fate }, { key: `single-${fate % 50}` }).catch(ignoreKey);
  if (luck % 3 === 0) throw new Error("The service hung up after the batch was stored.");
}

/** Somebody else has the key with another input: that is for the caller to know. */
function ignoreKey(error: unknown): void {
  if ((error as { code?: string }).code !== "KEY_CONFLICT") throw error;
}
