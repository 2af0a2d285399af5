// `holdfast schedules`: registers all commands of the group, and holds those that read: `list`, `show`, `ticks`, `preview`,
// `explain`, `versions`. The others are in schedules/edit.ts, trigger.ts and backfill.ts.

import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import type { ScheduleListOptions, TickListOptions } from "../../schedules/options.js";
import type { Preview } from "../../schedules/preview.js";
import { OUTCOMES } from "../../schedules/rules/tick.js";
import type { Schedule, ScheduleStatus, ScheduleVersion } from "../../schedules/view.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import {
  aboutSchedule,
  oneOf,
  readInstantFlag,
  readInstantWords,
  readName,
  requireSchedule,
  unknownSchedule,
  wholeNumber,
} from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { newTable, shortTime } from "../output/format.js";
import {
  previewText,
  type ScheduleDetails,
  scheduleListPage,
  schedulePage,
  tickListPage,
} from "../output/schedules.js";
import { filterOf, runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, cut, EXIT, plain } from "../shell.js";
import { underPause } from "./pause.js";
import { schedulesBackfillCommand } from "./schedules/backfill.js";
import {
  schedulesApplyCommand,
  schedulesCreateCommand,
  schedulesDeleteCommand,
  schedulesPauseCommand,
  schedulesPlanCommand,
  schedulesResumeCommand,
  schedulesUpdateCommand,
} from "./schedules/edit.js";
import {
  schedulesPingCommand,
  schedulesTestCommand,
  schedulesTriggerCommand,
} from "./schedules/trigger.js";

const COMMANDS = [
  schedulesListCommand,
  schedulesShowCommand,
  schedulesCreateCommand,
  schedulesUpdateCommand,
  schedulesDeleteCommand,
  schedulesPauseCommand,
  schedulesResumeCommand,
  schedulesTriggerCommand,
  schedulesTestCommand,
  schedulesPingCommand,
  schedulesPreviewCommand,
  schedulesExplainCommand,
  schedulesTicksCommand,
  schedulesBackfillCommand,
  schedulesVersionsCommand,
  schedulesPlanCommand,
  schedulesApplyCommand,
];

export function schedulesCommand(call: Call): Command {
  const command = newCommand({
    name: "schedules",
    summary: "List, change and run schedules, and explain why they did or did not fire.",
    examples: [
      "schedules list",
      'schedules create nightly-report --job report --cron "0 2 * * *" --tz Europe/Paris',
      "schedules explain nightly-report 2026-03-29T02:00:00+01:00",
    ],
  });
  for (const add of COMMANDS) command.addCommand(add(call));
  return command;
}

// `holdfast schedules list`: schedules by name, with their next tick and how the last one ended.

type ListFlags = CommonFlags & ScheduleListOptions & WatchFlags;

const LIST_FILTERS = ["job", "app", "status", "limit", "cursor"] as const;
const STATUSES: readonly ScheduleStatus[] = ["active", "paused", "ended", "broken"];

function schedulesListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List schedules by name.",
    examples: ["schedules list --status paused", "schedules list --job report --watch 5s"],
  })
    .option("--job <name>", "schedules of this job")
    .option("--app <name>", "schedules of this app")
    .option("--status <status>", STATUSES.join(", "), oneOf(STATUSES))
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <name>", "continue where an earlier list ended");
  return act<ListFlags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const filter: ScheduleListOptions = filterOf(flags, LIST_FILTERS);
    return runReadCommand({ flags, shell }, async (holdfast) => {
      const page = await holdfast.schedules.list(filter);
      const setting = { colours: shell.colours, nowMs: systemClock.wallMs() };
      const shown = { text: scheduleListPage(page, setting), document: page };
      return underPause(holdfast, shown, shell.colours);
    });
  });
}

// `holdfast schedules show`: everything about one schedule.

type ShowFlags = CommonFlags & WatchFlags;

const NEXT_SHOWN = 5;
const LAST_SHOWN = 10;

function schedulesShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary:
      "Show one schedule: its rules, its next ticks, and its last ticks with their outcomes.",
    examples: ["schedules show nightly-report", "schedules show nightly-report --watch 5s"],
  }).argument("<name>", "name of the schedule", readName);
  return act<ShowFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags, name = "") => {
      const { shell } = call;
      return runReadCommand({ flags, shell }, async (holdfast) => {
        const details = await readDetails(holdfast, name);
        const { schedule, ...rest } = details;
        const setting = { colours: shell.colours, nowMs: systemClock.wallMs() };
        const shown = { text: schedulePage(details, setting), document: { ...schedule, ...rest } };
        return underPause(holdfast, shown, shell.colours);
      });
    },
  );
}

async function readDetails(holdfast: Holdfast, name: string): Promise<ScheduleDetails> {
  const schedule = await requireSchedule(holdfast, name);
  const { schedules } = holdfast;
  const [preview, { ticks }, versions, backfills] = await Promise.all([
    previewOf(holdfast, schedule),
    schedules.ticks(name, { limit: LAST_SHOWN }),
    schedules.versions(name),
    schedules.backfills(name),
  ]);
  const backfill = backfills.find(({ status }) => status === "running") ?? null;
  return { schedule, preview, ticks, versionCount: versions.length, backfill };
}

/** Null for a broken schedule whose ticks cannot be computed; the rest is still shown. */
async function previewOf(holdfast: Holdfast, schedule: Schedule): Promise<Preview | null> {
  try {
    return await holdfast.schedules.preview(schedule.name, NEXT_SHOWN);
  } catch (error) {
    if (schedule.brokenAt === null) throw error;
    return null;
  }
}

// `holdfast schedules ticks`: the ledger, newest first; of one schedule or of all.

type TicksFlags = CommonFlags & TickListOptions & WatchFlags;

const TICKS_FILTERS = ["outcome", "from", "to", "limit", "cursor"] as const;

function schedulesTicksCommand(call: Call): Command {
  const command = newCommand({
    name: "ticks",
    summary: "List ticks with their outcome and reason, newest first.",
    examples: [
      "schedules ticks nightly-report --limit 20",
      "schedules ticks --outcome missed --from 2026-03-01T00:00:00Z",
    ],
  })
    .argument("[name]", "name of the schedule (default: all of them)", readName)
    .option("--outcome <outcome>", OUTCOMES.join(", "), oneOf(OUTCOMES))
    .option("--from <time>", "ticks at or after this time", readInstantFlag)
    .option("--to <time>", "ticks at or before this time", readInstantFlag)
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <cursor>", "continue where an earlier list ended");
  return act<TicksFlags>(withConfigOption(withWatchOption(command)), call, async (flags, name) => {
    const { shell } = call;
    const filter: TickListOptions = filterOf(flags, TICKS_FILTERS);
    return runReadCommand({ flags, shell }, async (holdfast) => {
      const { schedules } = holdfast;
      const page = await schedules.ticks(name ?? null, filter);
      // A deleted schedule keeps its ledger; only a name without history is a mistake.
      const isUnknown = name !== undefined && page.ticks.length === 0;
      if (isUnknown && (await schedules.versions(name)).length === 0)
        throw await unknownSchedule({ holdfast, name });
      const params = { colours: shell.colours, isOfOne: name !== undefined };
      return { text: tickListPage(page, params), document: page };
    });
  });
}

// `holdfast schedules preview`: the next ticks of a schedule by its definition.

type PreviewFlags = CommonFlags & WatchFlags & { readonly count: number };

function schedulesPreviewCommand(call: Call): Command {
  const command = newCommand({
    name: "preview",
    summary: "Show the next ticks of a schedule, with notes where the clocks change.",
    examples: ["schedules preview nightly-report --count 30"],
  })
    .argument("<name>", "name of the schedule", readName)
    .option("--count <count>", "how many", wholeNumber({ min: 1, max: 1_000 }), 10);
  return act<PreviewFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags, name = "") => {
      const { shell } = call;
      return runReadCommand({ flags, shell }, async (holdfast) => {
        const schedule = await requireSchedule(holdfast, name);
        const preview = await holdfast.schedules.preview(name, flags.count);
        const setting = { colours: shell.colours, nowMs: systemClock.wallMs() };
        const lines = [
          shell.colours.dim(plain(schedule.description)),
          ...(schedule.status === "paused"
            ? ["It is paused: these ticks fire only if it is resumed."]
            : []),
          previewText(preview, schedule, setting),
        ];
        const { text } = await underPause(
          holdfast,
          { text: lines.join("\n"), document: {} },
          shell.colours,
        );
        return { text, document: preview };
      });
    },
  );
}

// `holdfast schedules explain`: why a run was or was not made at an instant.

function schedulesExplainCommand(call: Call): Command {
  const command = newCommand({
    name: "explain",
    summary:
      "Explain why a run was or was not made at an instant, with the evidence; without an instant, for the last tick.",
    examples: [
      "schedules explain nightly-report",
      "schedules explain nightly-report 2026-03-29T02:00:00+01:00",
      "schedules explain nightly-report 2026-03-29T01:00:00Z --json",
    ],
  })
    .argument("<name>", "name of the schedule", readName)
    // Several words: a printed time has spaces, and need not be quoted.
    .argument("[at...]", "the instant, with its zone (default: the last tick)");
  return act<CommonFlags>(withConfigOption(command), call, async (flags, name = "", ...words) => {
    const { shell } = call;
    const at = words.length === 0 ? undefined : readInstantWords(words, "<at>").toISOString();
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const explanation = await aboutSchedule({ holdfast, name }, () =>
        holdfast.schedules.explain(name, at),
      );
      const lines = explanation.evidence.map((line) => shell.colours.dim(`  ${plain(line)}`));
      await shell.say([plain(explanation.text), ...lines].join("\n"));
      await shell.printJson(explanation);
      return EXIT.done;
    });
  });
}

// `holdfast schedules versions`: every definition that a schedule had, who made it and what changed.

const WHEN_LENGTH_MAX = 50;
/** Members that differ in every version. */
const OWN = ["version", "kind", "at", "by", "description"];

function schedulesVersionsCommand(call: Call): Command {
  const command = newCommand({
    name: "versions",
    summary: "List all definitions of a schedule, with who changed what; also of a deleted one.",
    examples: ["schedules versions nightly-report"],
  }).argument("<name>", "name of the schedule", readName);
  return act<CommonFlags & WatchFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags, name = "") => {
      const { shell } = call;
      return runReadCommand({ flags, shell }, async (holdfast) => {
        const versions = await holdfast.schedules.versions(name);
        if (versions.length === 0) throw await unknownSchedule({ holdfast, name });
        return { text: versionsPage(versions, shell.colours), document: { versions } };
      });
    },
  );
}

function versionsPage(versions: readonly ScheduleVersion[], colours: Colours): string {
  const table = newTable(["version", "kind", "at", "by", "when", "changed"], colours);
  for (const [index, each] of versions.entries()) {
    table.push([
      String(each.version),
      each.kind,
      shortTime(each.at),
      plain(each.by ?? ""),
      cut(plain(each.description), WHEN_LENGTH_MAX),
      changedMembers(versions[index - 1], each).join(", "),
    ]);
  }
  return table.toString().replace(/(?<! ) +$/gm, "");
}

function changedMembers(before: ScheduleVersion | undefined, after: ScheduleVersion): string[] {
  if (!before) return [];
  const members = Object.keys(after) as (keyof ScheduleVersion)[];
  return members.filter(
    (member) =>
      !OWN.includes(member) && JSON.stringify(before[member]) !== JSON.stringify(after[member]),
  );
}
