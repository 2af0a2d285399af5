// Checks as a page of text for people: what is broken with its evidence, what has no answer, and how many
// are well.

import type { CheckReport, CheckResult } from "../../operations/check.js";
import type { HealthReport } from "../../operations/health.js";
import type { RecoverReport } from "../../operations/recover.js";
import type { RepairReport, RepairStep } from "../../operations/repair.js";
import { type Colours, cut, plain } from "../shell.js";
import { factLines, newTable } from "./runs.js";
import { shortTime } from "./times.js";

const EVIDENCE_LENGTH_MAX = 160;

export function checkPage({ checks }: CheckReport, colours: Colours): string {
  const bad = checks.filter(({ ok }) => !ok);
  const lines = bad.flatMap((check) => [
    headline(check, colours),
    ...evidenceLines(check, colours),
  ]);
  const well = checks.length - bad.length;
  if (bad.length === 0) return colours.green(`All ${well} checks are well.`);
  return [...lines, "", `${well} of ${checks.length} checks are well.`].join("\n");
}

function headline(check: CheckResult, colours: Colours): string {
  const { name, promise, violations, unfinished, error } = check;
  const what = `${plain(name)}${promise === null ? "" : ` (${promise})`}`;
  if (unfinished) return `${colours.yellow("no answer in time")}  ${what}`;
  if (error !== null) return `${colours.yellow("could not be asked")}  ${what}: ${plain(error)}`;
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

export function repairPage(report: RepairReport, colours: Colours): string {
  const { steps, applied, ok } = report;
  if (steps.length === 0) return colours.green("Nothing is broken.");
  const lines = steps.flatMap((step) => [...stepLines(step, colours), ""]);
  if (!applied) {
    const isMendable = steps.some(({ action }) => action !== null);
    return [
      ...lines,
      isMendable ? "Nothing was changed. Do it: add --apply" : "No rule mends this.",
    ].join("\n");
  }
  const end = ok
    ? colours.green("All checks are well now.")
    : colours.red(`Still broken: ${report.broken.map(plain).join("; ")}`);
  return [...lines, end].join("\n");
}

function stepLines(step: RepairStep, colours: Colours): string[] {
  const { check, violations, evidence, action, advice, changed } = step;
  const what = evidence.flatMap((row) => (row.what === undefined ? [] : [String(row.what)]));
  const lines = [`${colours.red(`${violations} broken`)}  ${plain(check)}`];
  if (what.length > 0) lines.push(`  ${colours.dim(cut(plain(what.join(", ")), WHAT_LENGTH_MAX))}`);
  if (action !== null) {
    const done = changed === null ? "would be mended" : `mended (${changed} rows)`;
    lines.push(`  ${colours.green(done)}: ${action}`);
  }
  if (advice !== null) lines.push(`  ${colours.yellow("by hand")}: ${plain(advice)}`);
  return lines;
}

export function recoverPage(report: RecoverReport, colours: Colours): string {
  const { applied, schedules, jobs, liveInstances } = report;
  const lines = factLines(
    [
      ["leases", `${report.leases} of holders that are gone, with ${report.runs} runs`],
      ["locks", `${report.locks} of holders that are gone`],
      [
        "alerts",
        report.deliveries === 0
          ? null
          : `${report.deliveries} deliveries wait and will be sent, some perhaps for the second time`,
      ],
      [
        "keys",
        report.keys === 0
          ? null
          : `${report.keys} as the backup has them: revoke again what was revoked since (holdfast keys list)`,
      ],
      ["fences", `raised by ${report.fencesRaisedBy.toLocaleString("en")}`],
      [
        "instances",
        liveInstances === 0
          ? null
          : colours.red(`${liveInstances} were seen lately: stop them first`),
      ],
    ],
    colours,
  );
  lines.push("", ...fireLines(schedules, report.isCut, colours));
  lines.push("", ...waitLines(jobs, colours), "");
  lines.push(
    applied
      ? colours.green("Done. Start the instances when you agree with the lists above.")
      : "Nothing was changed. Do it: add --yes",
  );
  return lines.join("\n");
}

function fireLines(
  schedules: RecoverReport["schedules"],
  isCut: boolean,
  colours: Colours,
): string[] {
  if (schedules.length === 0) return ["No tick is due: nothing fires by itself at the first poll."];
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
  if (jobs.length === 0) return ["No run waits: nothing runs by itself."];
  const table = newTable(["job", "ready", "waiting", "held"], colours);
  for (const { job, ready, waiting, held } of jobs)
    table.push([plain(job), String(ready), String(waiting), String(held)]);
  return ["Workers will run what is ready, then what waits, then what was held:", table.toString()];
}

export function healthPage({ figures }: HealthReport, colours: Colours): string {
  const table = newTable(["", "figure", "found", "wanted"], colours);
  for (const { name, ok, found, wanted } of figures)
    table.push([ok ? colours.green("well") : colours.red("not"), name, found, wanted]);
  return table.toString().replace(/(?<! ) +$/gm, "");
}
