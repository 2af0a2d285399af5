// The ledger as a table for people: what became of each tick, and why.

import type { Outcome } from "../../schedules/rules/tick.js";
import type { Tick } from "../../schedules/view.js";
import { formatDuration } from "../../shared/duration-text.js";
import { type Colours, cut, plain } from "../shell.js";
import { newTable } from "./runs.js";
import { shortTime } from "./times.js";

const NOTE_LENGTH_MAX = 60;

export const COLOUR_OF_OUTCOME: Readonly<Record<Outcome, "green" | "yellow" | "red">> = {
  fired: "green",
  skipped: "yellow",
  missed: "red",
};

type TableParams = { readonly colours: Colours; readonly isOfOne: boolean };

export function tickListPage(
  page: { readonly ticks: readonly Tick[]; readonly nextCursor: string | null },
  params: TableParams,
): string {
  if (page.ticks.length === 0) return "No ticks.";
  const more = page.nextCursor === null ? "" : `\nMore: add --cursor '${plain(page.nextCursor)}'`;
  return `${tickTable(page.ticks, params)}${more}`;
}

export function tickTable(ticks: readonly Tick[], { colours, isOfOne }: TableParams): string {
  const columns = ["tick", "outcome", "reason", "late", "run", "note"];
  const table = newTable(isOfOne ? columns : ["schedule", ...columns], colours);
  for (const tick of ticks) {
    const { at, reason, lateMs, runId } = tick;
    table.push([
      ...(isOfOne ? [] : [plain(tick.schedule)]),
      shortTime(at),
      outcomeText(tick, colours),
      reason,
      lateMs === null ? "" : formatDuration(lateMs),
      runId ?? "",
      cut(plain(noteOf(tick)), NOTE_LENGTH_MAX),
    ]);
  }
  return table.toString().replace(/(?<! ) +$/gm, "");
}

/** A tick whose run failed or was cancelled did not end well, although it was fired. */
function outcomeText({ outcome, runStatus }: Tick, colours: Colours): string {
  if (runStatus === "failed") return colours.red(`${outcome}, failed`);
  if (runStatus === "cancelled") return colours.yellow(`${outcome}, cancelled`);
  return colours[COLOUR_OF_OUTCOME[outcome]](outcome);
}

/** A stretch says how long it is; a pause says who paused. */
function noteOf({ count, lastAt, evidence }: Tick): string {
  const stretch = count > 1 ? `${count} ticks until ${shortTime(lastAt)}` : "";
  const by = evidence?.by ? `by ${evidence.by}` : "";
  const why = evidence?.note ?? evidence?.error ?? "";
  return [stretch, by, why].filter((part) => part !== "").join("; ");
}
