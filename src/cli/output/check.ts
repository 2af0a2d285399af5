// Checks as a page of text for people: what is broken with its evidence, what has no answer, and how many
// are well.

import type { CheckReport, CheckResult } from "../../operations/check.js";
import { type Colours, cut, plain } from "../shell.js";

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
