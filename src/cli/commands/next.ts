// `holdfast next`: prints the next ticks of a cron expression, with notes about clock changes. Needs no database.

import type { Command } from "commander";
import { type CronSchedule, cronSchedule, nextTick } from "../../schedules/cron/cron.js";
import { describeCron } from "../../schedules/cron/describe.js";
import { type DstTouch, describeTouch, dstTouches } from "../../schedules/cron/dst.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { ConfigurationError } from "../../shared/errors.js";
import { act, type Call, newCommand } from "../command.js";
import { UsageError } from "../failure.js";
import { readInstantFlag, wholeNumber } from "../flags/read.js";
import { type DstFlags, dstOptions, withDstOptions } from "../flags/schedules.js";
import type { CommonFlags } from "../instance.js";
import { localTime, newTable } from "../output/format.js";
import { type Colours, EXIT } from "../shell.js";

type Flags = CommonFlags &
  DstFlags & {
    readonly tz?: string;
    readonly from?: Date;
    readonly count: number;
  };

type Coming = { readonly ticks: readonly number[]; readonly touches: readonly DstTouch[] };

const COUNT_DEFAULT = 10;
const COUNT_MAX = 1_000;
const TOUCHES_MAX = 100;
const DAY_MS = 86_400_000;

export function nextCommand(call: Call): Command {
  const command = newCommand({
    name: "next",
    summary: "Show the next ticks of a cron expression.",
    examples: [
      'next "30 2 * * *" --tz America/New_York --from 2026-03-07T12:00:00Z --count 3',
      'next "0 9 * * mon-fri" --tz Europe/Paris --json',
    ],
  })
    .argument("<cron>", "5 fields, or 6 with seconds first, in quotes; or @daily and the like")
    .option("--tz <zone>", "IANA time zone, for example Europe/Paris (default: UTC)")
    .option("--from <time>", "the ticks after this time (default: now)", readInstantFlag)
    .option("--count <count>", "how many", wholeNumber({ min: 1, max: COUNT_MAX }), COUNT_DEFAULT);
  return act<Flags>(withDstOptions(command), call, async (flags, cron = "") => {
    const { shell } = call;
    const { from, count } = flags;
    const schedule = readSchedule(cron, flags);
    const fromMs = from?.getTime() ?? systemClock.wallMs();
    const coming = lookAhead(schedule, { fromMs, count });
    await shell.say(page(schedule, coming, shell.colours));
    await shell.printJson({
      ticks: coming.ticks.map(iso),
      notes: coming.touches.map((touch) => ({
        at: iso(touch.atMs),
        tick: touch.tickMs === null ? null : iso(touch.tickMs),
        text: describeTouch(touch),
      })),
    });
    return EXIT.done;
  });
}

/** Not while parsing: the refusal of an option repeats its value, and this one may be long. */
function readSchedule(cron: string, flags: Flags): CronSchedule {
  const { tz: timezone } = flags;
  const dst = dstOptions(flags);
  try {
    return cronSchedule({
      cron,
      ...(timezone === undefined ? {} : { timezone }),
      ...(dst === undefined ? {} : { dst }),
    });
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const named = error.problems.map(
      ({ field, message }) => `${field === "timezone" ? "--tz" : "<cron>"}: ${message}`,
    );
    throw new UsageError(named.join("\n"));
  }
}

function lookAhead(
  schedule: CronSchedule,
  { fromMs, count }: { readonly fromMs: number; readonly count: number },
): Coming {
  const ticks: number[] = [];
  let tick = nextTick(schedule, fromMs);
  while (tick !== null && ticks.length < count) {
    ticks.push(tick);
    tick = nextTick(schedule, tick);
  }
  const lastMs = ticks.at(-1);
  if (lastMs === undefined) return { ticks, touches: [] };
  // A first pass lies before the change itself, so look a day further than the last tick.
  const untilMs = lastMs + DAY_MS;
  const touches = dstTouches(schedule, { fromMs, untilMs, limit: TOUCHES_MAX }).filter(
    ({ tickMs, atMs }) => (tickMs === null ? atMs <= lastMs : ticks.includes(tickMs)),
  );
  return { ticks, touches };
}

function page(schedule: CronSchedule, { ticks, touches }: Coming, colours: Colours): string {
  const { expression, zone } = schedule;
  const title = colours.dim(`${describeCron(expression)}, ${zone.name}`);
  if (ticks.length === 0) return `${title}\nNo tick follows.`;
  const table = newTable(["tick", "local time", "note"], colours);
  for (const tick of ticks) {
    const touch = touches.find(({ tickMs }) => tickMs === tick);
    table.push([
      iso(tick),
      localTime(tick, zone),
      touch ? colours.yellow(describeTouch(touch)) : "",
    ]);
  }
  const skipped = touches.filter(({ tickMs }) => tickMs === null);
  const notes = skipped.map((touch) => colours.yellow(`Note: ${describeTouch(touch)}.`));
  return [title, table.toString(), ...notes].join("\n").replace(/(?<! ) +$/gm, "");
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
