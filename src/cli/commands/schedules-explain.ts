// `holdfast schedules explain`: why there was a run at an instant, or why not.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { aboutSchedule, readName } from "../flags/names.js";
import { readInstantFlag } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

export function schedulesExplainCommand(call: Call): Command {
  const command = newCommand({
    name: "explain",
    summary: "Say why there was a run at an instant, or why not, and what that rests on.",
    examples: [
      "schedules explain nightly-report 2026-03-29T02:00:00+01:00",
      "schedules explain nightly-report 2026-03-29T01:00:00Z --json",
    ],
  })
    .argument("<name>", "name of the schedule", readName)
    .argument("<at>", "the instant, with its zone", (text) => readInstantFlag(text).toISOString());
  return act<CommonFlags>(withConfigOption(command), call, async (flags, name = "", at = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const explanation = await aboutSchedule({ holdfast, name }, () =>
        holdfast.schedules.explain(name, at),
      );
      const lines = explanation.evidence.map((line) => shell.colours.dim(`  ${plain(line)}`));
      await shell.say([plain(explanation.text), ...lines].join("\n"));
      await shell.answer(explanation);
      return EXIT.done;
    });
  });
}
