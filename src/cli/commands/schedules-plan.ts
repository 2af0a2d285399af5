// `holdfast schedules plan`: what `apply` would change, and which upcoming ticks would move.

import type { Command } from "commander";
import { act, type Call, newCommand } from "../command.js";
import { type CommonFlags, requireConfig, withInstance } from "../instance.js";
import { plannedChanges, planPage } from "../output/plan.js";
import { EXIT } from "../shell.js";
import { withConfig } from "./start.js";

export function schedulesPlanCommand(call: Call): Command {
  const command = newCommand({
    name: "plan",
    summary: "Show what apply would change; exit code 1 if something would.",
    examples: ["schedules plan", "schedules plan jobs/holdfast.config.mjs --json"],
  }).argument("[config]", "configuration file (default: the one in this folder)");
  return act<CommonFlags>(command, call, async (given, config) => {
    const { shell } = call;
    const flags = withConfig(given, requireConfig(config));
    return withInstance({ flags, purpose: "look", shell }, async (holdfast) => {
      const changes = await plannedChanges(holdfast, await holdfast.schedules.plan());
      await shell.say(planPage(changes, { colours: shell.colours, isDone: false }));
      await shell.answer({ changes });
      return changes.some(({ isEffective }) => isEffective) ? EXIT.no : EXIT.done;
    });
  });
}
