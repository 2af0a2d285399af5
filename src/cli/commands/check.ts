// `holdfast check`: which promises the tables break.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readDurationFlag } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { checkPage } from "../output/check.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & { readonly sql?: boolean; readonly timeout?: number };

export function checkCommand(call: Call): Command {
  const command = newCommand({
    name: "check",
    summary:
      "Look for broken promises in the tables, in one snapshot: exit code 1 if there are, 3 if the time did not suffice.",
    examples: ["check", "check --json --timeout 5m", "check --sql > check.sql"],
  })
    .option(
      "--timeout <duration>",
      "what has no answer by then is unfinished (default: 1m)",
      readDurationFlag,
    )
    .option("--sql", "print the checks as one script for psql or sqlite3 instead");
  return act<Flags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", needsCode: true, shell }, async (holdfast) => {
      if (flags.sql) {
        const script = holdfast.checkScript();
        await shell.say(script);
        await shell.answer({ sql: script });
        return EXIT.done;
      }
      const { timeout } = flags;
      const report = await holdfast.check(timeout === undefined ? {} : { timeout });
      await shell.say(checkPage(report, shell.colours));
      await shell.answer(report);
      if (report.ok) return EXIT.done;
      const isBroken = report.checks.some(({ violations }) => violations > 0);
      return isBroken ? EXIT.no : EXIT.impossible;
    });
  });
}
