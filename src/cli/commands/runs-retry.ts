// `holdfast runs retry`: one attempt more for a run that failed or was cancelled.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT } from "../shell.js";
import { readRunId } from "../usage.js";

const WORDS = {
  pending: "pending again, with one attempt more",
  not_terminal: "not retried: it has not ended yet",
  completed: "not retried: it completed",
  not_found: "not found: it never existed, or it was pruned",
} as const;

export function runsRetryCommand(call: Call): Command {
  const command = newCommand({
    name: "retry",
    summary: "Give a failed or cancelled run one attempt more.",
    examples: ["runs retry 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55"],
  }).argument("<run>", "id of the run", readRunId);
  return act<CommonFlags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    const answer = await withInstance({ flags, purpose: "look", shell }, (holdfast) =>
      holdfast.runs.retry(id),
    );
    await shell.say(`Run ${id}: ${WORDS[answer]}.`);
    await shell.answer({ id, answer });
    return answer === "pending" ? EXIT.done : EXIT.no;
  });
}
