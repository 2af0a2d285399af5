// `holdfast runs cancel`: a pending run at once; a running one is told to stop.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readRunId } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT } from "../shell.js";

const WORDS = {
  cancelled: "cancelled",
  requested: "told to stop; it is cancelled when it does, or after 30 s",
  already_terminal: "not cancelled: it had already ended",
  not_found: "not found: it never existed, or it was pruned",
} as const;

export function runsCancelCommand(call: Call): Command {
  const command = newCommand({
    name: "cancel",
    summary: "Cancel a run that has not ended.",
    examples: ["runs cancel 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55"],
  }).argument("<run>", "id of the run", readRunId);
  return act<CommonFlags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    const answer = await withInstance({ flags, purpose: "look", shell }, (holdfast) =>
      holdfast.runs.cancel(id),
    );
    await shell.say(`Run ${id}: ${WORDS[answer]}.`);
    await shell.answer({ id, answer });
    return answer === "cancelled" || answer === "requested" ? EXIT.done : EXIT.no;
  });
}
