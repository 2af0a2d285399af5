// `holdfast runs retry`: one attempt more for a run that failed or was cancelled, or for the failed
// ones among the runs that it made.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readRunId, UsageError } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT } from "../shell.js";

const WORDS = {
  pending: "pending again, with one attempt more",
  not_terminal: "not retried: it has not ended yet",
  completed: "not retried: it completed",
  not_found: "not found: it never existed, or it was pruned",
} as const;

type Flags = CommonFlags & { readonly children?: boolean; readonly batch?: string };

export function runsRetryCommand(call: Call): Command {
  const command = newCommand({
    name: "retry",
    summary: "Give a failed or cancelled run one attempt more.",
    examples: [
      "runs retry 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "runs retry 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --children",
    ],
  })
    .argument("<run>", "id of the run", readRunId)
    .option("--children", "every failed run that it made, instead of itself")
    .option("--batch <name>", "with --children: only those of this batch");
  return act<Flags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    if (flags.children === true) return retryChildren(call, flags, id);
    if (flags.batch !== undefined)
      throw new UsageError("--batch says which children to retry: add --children.");
    const answer = await withInstance({ flags, purpose: "look", shell }, (holdfast) =>
      holdfast.runs.retry(id),
    );
    await shell.say(`Run ${id}: ${WORDS[answer]}.`);
    await shell.answer({ id, answer });
    return answer === "pending" ? EXIT.done : EXIT.no;
  });
}

async function retryChildren({ shell }: Call, flags: Flags, id: string): Promise<number> {
  const only = flags.batch === undefined ? {} : { batch: flags.batch };
  const { retried } = await withInstance({ flags, purpose: "look", shell }, (holdfast) =>
    holdfast.runs.retryFailed(id, only),
  );
  const words = retried === 1 ? "1 failed child is" : `${retried} failed children are`;
  await shell.say(
    retried === 0 ? `Run ${id}: no failed children.` : `Run ${id}: ${words} pending again.`,
  );
  await shell.answer({ id, retried });
  return retried > 0 ? EXIT.done : EXIT.no;
}
