// What `plan` found and `apply` did, for people: one line a schedule, and the ticks that move.

import type { Holdfast } from "../../holdfast.js";
import type { PlannedChange } from "../../schedules/declared.js";
import { type Colours, plain } from "../shell.js";
import { shortTime } from "./times.js";

/** `isEffective`: applying it changes something. */
export type Change = PlannedChange & { readonly isEffective: boolean };

type Words = { readonly planned: string; readonly done: string };

const WORDS: Readonly<Record<PlannedChange["change"], Words>> = {
  created: { planned: "would be created", done: "created" },
  edited: { planned: "would be changed", done: "changed" },
  older: {
    planned: "would be put back: a newer definition is in force",
    done: "put back, over a newer definition",
  },
  unchanged: { planned: "unchanged", done: "unchanged" },
  foreign: {
    planned: "left alone: another app, or a call, made a schedule of this name",
    done: "left alone: another app, or a call, made a schedule of this name",
  },
  vanished: {
    planned: "no longer declared: would be paused",
    done: "no longer declared: paused",
  },
};
const VANISHED_ONLY = "no longer declared: left as it is";

export async function plannedChanges(
  holdfast: Holdfast,
  planned: readonly PlannedChange[],
): Promise<readonly Change[]> {
  const changes: Change[] = [];
  for (const each of planned) {
    changes.push({ ...each, isEffective: await isEffective(holdfast, each) });
  }
  return changes;
}

async function isEffective(
  holdfast: Holdfast,
  { schedule, change }: PlannedChange,
): Promise<boolean> {
  if (change !== "vanished") return change !== "unchanged" && change !== "foreign";
  // Only an app with a name may speak for what is not there any more, and it pauses only once.
  const found = await holdfast.schedules.get(schedule);
  return found !== null && found.app !== null && found.pausedAt === null;
}

export function planPage(
  changes: readonly Change[],
  { colours, isDone }: { readonly colours: Colours; readonly isDone: boolean },
): string {
  if (changes.length === 0) return "The code declares no schedules.";
  const width = Math.max(...changes.map(({ schedule }) => plain(schedule).length)) + 2;
  const lines = changes.flatMap((each) => [
    `${plain(each.schedule).padEnd(width)}${wordsFor(each, { colours, isDone })}`,
    ...movedLines(each, colours),
  ]);
  const count = changes.filter((each) => each.isEffective).length;
  const said = isDone ? "changed" : "would change";
  const which = count === 0 ? "Nothing" : `${count} schedule${count === 1 ? "" : "s"}`;
  return [...lines, `${which} ${said}.`].join("\n");
}

function wordsFor(
  { change, isEffective }: Change,
  { colours, isDone }: { readonly colours: Colours; readonly isDone: boolean },
): string {
  if (change === "vanished" && !isEffective) return colours.dim(VANISHED_ONLY);
  const words = WORDS[change][isDone ? "done" : "planned"];
  if (change === "foreign") return colours.yellow(words);
  return isEffective ? words : colours.dim(words);
}

/** Ticks that go away, and those that come. */
function movedLines({ ticksBefore, ticksAfter }: Change, colours: Colours): string[] {
  const before = ticksBefore.map(shortTime);
  const after = ticksAfter.map(shortTime);
  return [
    ...before.filter((each) => !after.includes(each)).map((each) => colours.red(`  - ${each}`)),
    ...after.filter((each) => !before.includes(each)).map((each) => colours.green(`  + ${each}`)),
  ];
}
