// Commands for the consistency of the tables: `check` finds broken promises, `repair` repairs them, `recover` prepares a restored
// backup for work.

import type { Command } from "commander";
import type { CheckReport, CheckResult, RepairReport, RepairStep } from "../../operations/check.js";
import type { RecoverReport } from "../../operations/recover.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { ImpossibleError } from "../failure.js";
import { readDurationFlag } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { factLines, newTable, shortTime } from "../output/format.js";
import { type Colours, cut, EXIT, plain } from "../shell.js";
import { underPause } from "./pause.js";

// `holdfast check`

type Flags = CommonFlags & { readonly sql?: boolean; readonly timeout?: number };

export function checkCommand(call: Call): Command {
  const command = newCommand({
    name: "check",
    summary:
      "Check the tables for broken promises, in one snapshot: exit code 1 if there are any, 3 if the time did not suffice.",
    examples: ["check", "check --json --timeout 5m", "check --sql > check.sql"],
  })
    .option(
      "--timeout <duration>",
      "checks that take longer are unfinished (default: 1m)",
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
      "Repair what check finds: prints a plan, and applies it with --apply. Exit code 1 while anything is broken.",
    examples: ["repair", "repair --apply"],
  }).option("--apply", "apply the plan");
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
      "Prepare a restored backup: raise all fences, free the leases and locks of dead holders, and list what would fire and run.",
    examples: ["recover", "recover --yes"],
  })
    .option("--yes", "apply it; without this flag nothing changes")
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

const EVIDENCE_LENGTH_MAX = 160;

function checkPage({ checks }: CheckReport, colours: Colours): string {
  const bad = checks.filter(({ ok }) => !ok);
  const lines = bad.flatMap((check) => [
    headline(check, colours),
    ...evidenceLines(check, colours),
  ]);
  const passed = checks.length - bad.length;
  if (bad.length === 0) return colours.green(`All ${passed} checks passed.`);
  return [...lines, "", `${passed} of ${checks.length} checks passed.`].join("\n");
}

function headline(check: CheckResult, colours: Colours): string {
  const { name, promise, violations, unfinished, error } = check;
  const what = `${plain(name)}${promise === null ? "" : ` (${promise})`}`;
  if (unfinished) return `${colours.yellow("not finished in time")}  ${what}`;
  if (error !== null) return `${colours.yellow("could not run")}  ${what}: ${plain(error)}`;
  return `${colours.red(`${violations} broken`)}  ${what}`;
}

function evidenceLines({ evidence, violations }: CheckResult, colours: Colours): string[] {
  const rows = evidence.map((row) => {
    const { what, ...rest } = row;
    const details = Object.entries(rest).map(([name, value]) => `${name} ${textOf(value)}`);
    const parts = what === undefined ? details : [textOf(what), ...details];
    return `  ${colours.dim(cut(plain(parts.join(", ")), EVIDENCE_LENGTH_MAX))}`;
  });
  const more = violations - evidence.length;
  return more > 0 ? [...rows, `  ${colours.dim(`… and ${more} more`)}`] : rows;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

// Repairs, recoveries and health as pages of text for people.

const LISTED_MAX = 20;
const WHAT_LENGTH_MAX = 100;

function repairPage(report: RepairReport, colours: Colours): string {
  const { steps, applied, ok } = report;
  if (steps.length === 0) return colours.green("Nothing is broken.");
  const lines = steps.flatMap((step) => [...stepLines(step, colours), ""]);
  if (!applied) {
    const isRepairable = steps.some(({ action }) => action !== null);
    return [
      ...lines,
      isRepairable
        ? "Nothing was changed. To apply this, add --apply."
        : "No rule can repair this.",
    ].join("\n");
  }
  const end = ok
    ? colours.green("All checks pass now.")
    : colours.red(`Still broken: ${report.broken.map(plain).join("; ")}`);
  return [...lines, end].join("\n");
}

function stepLines(step: RepairStep, colours: Colours): string[] {
  const { check, violations, evidence, action, advice, changed } = step;
  const what = evidence.flatMap((row) => (row.what === undefined ? [] : [String(row.what)]));
  const lines = [`${colours.red(`${violations} broken`)}  ${plain(check)}`];
  if (what.length > 0) lines.push(`  ${colours.dim(cut(plain(what.join(", ")), WHAT_LENGTH_MAX))}`);
  if (action !== null) {
    const done = changed === null ? "would be repaired" : `repaired (${changed} rows)`;
    lines.push(`  ${colours.green(done)}: ${action}`);
  }
  if (advice !== null) lines.push(`  ${colours.yellow("by hand")}: ${plain(advice)}`);
  return lines;
}

function recoverPage(report: RecoverReport, colours: Colours): string {
  const { applied, schedules, jobs, liveInstances } = report;
  const lines = factLines(
    [
      ["leases", `${report.leases} of dead holders, with ${report.runs} runs`],
      ["locks", `${report.locks} of dead holders`],
      [
        "alerts",
        report.deliveries === 0
          ? null
          : `${report.deliveries} pending deliveries will be sent, some perhaps twice`,
      ],
      [
        "keys",
        report.keys === 0
          ? null
          : `${report.keys} as in the backup: revoke again those that were revoked since (holdfast keys list)`,
      ],
      ["fences", `raised by ${report.fencesRaisedBy.toLocaleString("en")}`],
      [
        "instances",
        liveInstances === 0
          ? null
          : colours.red(`${liveInstances} were seen recently: stop them first`),
      ],
    ],
    colours,
  );
  lines.push("", ...fireLines(schedules, report.isCut, colours));
  lines.push("", ...waitLines(jobs, colours), "");
  lines.push(
    applied
      ? colours.green("Done. Start the instances if the lists above are right.")
      : "Nothing was changed. To apply this, add --yes.",
  );
  return lines.join("\n");
}

function fireLines(
  schedules: RecoverReport["schedules"],
  isCut: boolean,
  colours: Colours,
): string[] {
  if (schedules.length === 0) return ["No tick is due: the first poll fires nothing."];
  const table = newTable(["schedule", "job", "due since", "fires", "recorded", "note"], colours);
  for (const each of schedules.slice(0, LISTED_MAX))
    table.push([
      plain(each.schedule),
      plain(each.job),
      each.nextAt === null ? "" : shortTime(each.nextAt),
      String(each.fires.length),
      String(each.recorded),
      plain(each.error ?? ""),
    ]);
  const more = schedules.length - LISTED_MAX;
  const rest =
    more > 0 || isCut ? [`… and ${Math.max(more, 0)}${isCut ? " or more" : ""} others`] : [];
  return ["The first poll of a scheduler will fire and record:", table.toString(), ...rest];
}

function waitLines(jobs: RecoverReport["jobs"], colours: Colours): string[] {
  if (jobs.length === 0) return ["No run is pending: workers start nothing."];
  const table = newTable(["job", "ready", "waiting", "held"], colours);
  for (const { job, ready, waiting, held } of jobs)
    table.push([plain(job), String(ready), String(waiting), String(held)]);
  return [
    "Workers will execute ready runs, then waiting ones, then those that were held:",
    table.toString(),
  ];
}
