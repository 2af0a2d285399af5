// What is said once a schedule was made or changed: when it ticks, and what to know about it.

import type { Upserted } from "../../schedules/options.js";
import type { Schedule } from "../../schedules/view.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { quoteShort } from "../../shared/suggest.js";
import { plain, type Shell } from "../shell.js";
import { fromNow, shortTime } from "./times.js";

export async function sayUpserted(params: {
  readonly upserted: Upserted;
  readonly said: string;
  readonly shell: Shell;
}): Promise<void> {
  const { upserted, said, shell } = params;
  const { schedule, warnings } = upserted;
  const yellow = (text: string) => shell.colours.yellow(plain(text));
  const lines = [
    `Schedule ${quoteShort(schedule.name)} ${said}: ${plain(schedule.description)}.`,
    nextText(schedule),
    ...warnings.map((warning) => yellow(`Warning: ${warning}`)),
  ];
  await shell.say(lines.join("\n"));
  await shell.answer(upserted);
}

/** "Next tick: 2026-03-08 07:00:00Z, in 3 h." */
export function nextText({ nextAt, status }: Pick<Schedule, "nextAt" | "status">): string {
  if (nextAt !== null)
    return `Next tick: ${shortTime(nextAt)}, ${fromNow(nextAt, systemClock.wallMs())}.`;
  return status === "paused" ? "It is paused: no tick until it is resumed." : "No tick follows.";
}

/** A schedule that code declares does not wholly belong to whoever changes it by hand. */
export function codeNote(schedule: Schedule, change: "changed" | "deleted"): string | null {
  if (schedule.source !== "code") return null;
  const where = `It is declared in code${schedule.app === null ? "" : ` of ${plain(schedule.app)}`}`;
  return change === "changed"
    ? `${where}: this change stays until the definition there changes.`
    : `${where}: the next start there makes it again. Remove it from the code, or pause it.`;
}
