// `holdfast schedules apply`: brings the database up to the schedules that the code declares, also
// over a newer definition: a rollback.

import type { Command } from "commander";
import { act, type Call, newCommand } from "../command.js";
import { type CommonFlags, requireConfig, withInstance } from "../instance.js";
import { plannedChanges, planPage } from "../output/plan.js";
import { EXIT } from "../shell.js";
import { withConfig } from "./start.js";

export function schedulesApplyCommand(call: Call): Command {
  const command = newCommand({
    name: "apply",
    summary: "Bring the database up to the schedules that the configuration file declares.",
    examples: ["schedules apply", "schedules apply jobs/holdfast.config.mjs"],
  }).argument("[config]", "configuration file (default: the one in this folder)");
  return act<CommonFlags>(command, call, async (given, config) => {
    const { shell } = call;
    const flags = withConfig(given, requireConfig(config));
    return withInstance({ flags, purpose: "add", shell }, async (holdfast) => {
      // Looked at first: afterwards nobody can tell what `apply` paused from what was paused before.
      const changes = await plannedChanges(holdfast, await holdfast.schedules.plan());
      await holdfast.schedules.apply();
      await shell.say(planPage(changes, { colours: shell.colours, isDone: true }));
      await shell.answer({ changes });
      return EXIT.done;
    });
  });
}
