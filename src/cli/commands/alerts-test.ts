// `holdfast alerts test`: shows whether alerts arrive, before one has to.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { underFlagNames } from "../flags/refused.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { alertTestPage } from "../output/alerts.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & { readonly destination?: string };

export function alertsTestCommand(call: Call): Command {
  const command = newCommand({
    name: "test",
    summary: "Send a test alert to every destination of the configuration file, or to one.",
    examples: ["alerts test", "alerts test --destination slack"],
  }).option("--destination <name>", "only this one (default: all)");
  return act<Flags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    const { destination } = flags;
    return withInstance({ flags, purpose: "look", needsCode: true, shell }, async (holdfast) => {
      const options = destination === undefined ? {} : { destination };
      const tested = await underFlagNames("alerts.test()", () => holdfast.alerts.test(options));
      await shell.say(alertTestPage(tested, shell.colours));
      await shell.answer(tested);
      return tested.ok ? EXIT.done : EXIT.no;
    });
  });
}
