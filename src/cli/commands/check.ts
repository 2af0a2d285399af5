// Commands for the consistency of the tables: `check` finds broken promises, `repair` mends them, `recover` prepares a restored
// backup for work.

import type { Command } from "commander";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { ImpossibleError } from "../failure.js";
import { readDurationFlag } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { checkPage, recoverPage, repairPage } from "../output/check.js";
import { EXIT } from "../shell.js";
import { underPause } from "./pause.js";

// `holdfast check`

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
    return withInstance(
      { flags, purpose: "existing", needsCode: true, shell },
      async (holdfast) => {
        if (flags.sql) {
          const script = holdfast.checkScript();
          await shell.say(script);
          await shell.printJson({ sql: script });
          return EXIT.done;
        }
        const { timeout } = flags;
        const report = await holdfast.check(timeout === undefined ? {} : { timeout });
        await shell.say(checkPage(report, shell.colours));
        await shell.printJson(report);
        if (report.ok) return EXIT.done;
        const isBroken = report.checks.some(({ violations }) => violations > 0);
        return isBroken ? EXIT.no : EXIT.impossible;
      },
    );
  });
}

// `holdfast repair`

type RepairFlags = CommonFlags & { readonly apply?: boolean };

export function repairCommand(call: Call): Command {
  const command = newCommand({
    name: "repair",
    summary:
      "Mend what check finds: prints its plan, and acts with --apply. Exit code 1 while anything is broken.",
    examples: ["repair", "repair --apply"],
  }).option("--apply", "do it");
  return act<RepairFlags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    return withInstance(
      { flags, purpose: "existing", needsCode: true, shell },
      async (holdfast) => {
        const report = await holdfast.repair({ apply: flags.apply ?? false });
        await shell.say(repairPage(report, shell.colours));
        await shell.printJson(report);
        return report.ok ? EXIT.done : EXIT.no;
      },
    );
  });
}

// `holdfast recover`

type RecoverFlags = CommonFlags & {
  readonly yes?: boolean;
  readonly apply?: boolean;
  readonly force?: boolean;
};

export function recoverCommand(call: Call): Command {
  const command = newCommand({
    name: "recover",
    summary:
      "After a restored backup: raise all fences, free what holders that are gone had, and list what would fire and run.",
    examples: ["recover", "recover --yes"],
  })
    .option("--yes", "do it; without it, it is only told")
    .option("--apply", "the same as --yes")
    .option("--force", "also while instances are on this database");
  return act<RecoverFlags>(withConfigOption(command), call, async (flags) => {
    const { shell } = call;
    const isApplied = flags.yes === true || flags.apply === true;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      if (isApplied && flags.force !== true) {
        const { liveInstances } = await holdfast.recover();
        if (liveInstances > 0)
          throw new ImpossibleError(
            `${liveInstances} instances were seen on this database within the last minute. Stop them, or add --force.`,
          );
      }
      const report = await holdfast.recover({ apply: isApplied });
      const page = { text: recoverPage(report, shell.colours), document: report };
      const { text, document } = await underPause(holdfast, page, shell.colours);
      await shell.say(text);
      await shell.printJson(document);
      return EXIT.done;
    });
  });
}
