// Commands that change schedules: `schedules create`, `update`, `delete`, `pause`, `resume`, `plan` and `apply`.

import type { Command } from "commander";
import type { Holdfast } from "../../../holdfast.js";
import type { Upserted, UpsertOptions } from "../../../schedules/options.js";
import type { Schedule } from "../../../schedules/view.js";
import { textProp } from "../../../shared/failure.js";
import { requireName } from "../../../shared/names.js";
import { quoteShort } from "../../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../../command.js";
import { DeclinedError, UsageError } from "../../failure.js";
import { underFlagNames } from "../../flags/errors.js";
import { aboutSchedule, readName, refusing, requireSchedule } from "../../flags/read.js";
import {
  changedOptions,
  optionsOf,
  readUnset,
  refuseSeveralPatterns,
  requirePattern,
  type ScheduleFlags,
  UNSETTABLE,
  type Unsettable,
  withScheduleOptions,
} from "../../flags/schedules.js";
import {
  type ActorFlags,
  actorName,
  type CommonFlags,
  requireConfig,
  withByOption,
  withInstance,
} from "../../instance.js";
import {
  codeNote,
  nextText,
  plannedChanges,
  planPage,
  sayUpserted,
} from "../../output/schedules.js";
import { EXIT, plain } from "../../shell.js";
import { withConfig } from "../start.js";

type Flags = CommonFlags & ScheduleFlags & ActorFlags;

export function schedulesCreateCommand(call: Call): Command {
  const command = newCommand({
    name: "create",
    summary: "Create a schedule. An existing one of that name stays unchanged; use update for it.",
    examples: [
      'schedules create nightly-report --job report --cron "0 2 * * *" --tz Europe/Paris',
      `schedules create poll-eu --job poll --every 10m --input '{"market":"eu"}' --overlap queue`,
      "schedules create crawl --job crawl --every 10m..15m --after-failure 30m",
      "schedules create goodbye --job send-mail --at 2030-01-31T09:00:00Z",
      'schedules create backup --monitor --cron "0 3 * * *" --grace 30m',
    ],
  })
    .argument("<name>", "name of the schedule", readName)
    .option("--job <name>", "the job that it runs", (text) =>
      refusing(() => requireName(text, "--job")),
    )
    .option("--monitor", "instead of a job: remote work that checks in here");
  withByOption(withScheduleOptions(command));
  return act<Flags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    requireJob(flags);
    requirePattern(flags);
    const options = (await optionsOf(flags)) as UpsertOptions;
    return withInstance({ flags, purpose: "add", shell }, async ({ schedules }) => {
      if (await schedules.get(name)) throw exists(name);
      const write = { by: actorName(flags), ifVersion: 0 };
      const upserted = await underFlagNames("schedules.upsert()", () =>
        schedules.upsert(name, options, write),
      ).catch((error: unknown) => {
        throw textProp(error, "code") === "SCHEDULE_CHANGED" ? exists(name) : error;
      });
      await sayUpserted({ upserted, outcome: "created", shell });
      return EXIT.done;
    });
  });
}

function requireJob({ job, monitor }: Flags): void {
  if (job !== undefined && monitor)
    throw new UsageError("--job and --monitor exclude each other; give only one.");
  if (job === undefined && !monitor)
    throw new UsageError(
      "Name what it runs: --job report, or --monitor for remote work that checks in.",
    );
}

function exists(name: string): DeclinedError {
  const shown = quoteShort(name);
  return new DeclinedError(
    `The schedule ${shown} already exists; nothing was changed. ` +
      `To change it: holdfast schedules update ${shown} …`,
    "SCHEDULE_EXISTS",
  );
}

// `holdfast schedules update`: changes the given members of a schedule; the others stay as they are.

type UpdateFlags = CommonFlags &
  ScheduleFlags &
  ActorFlags & { readonly unset?: readonly Unsettable[] };

/** This many conflicts with other writers mean that something is wrong. */
const TRIES_MAX = 50;

/** Flags that are not members of a schedule. */
const NO_MEMBERS = ["database", "json", "config", "by"];

export function schedulesUpdateCommand(call: Call): Command {
  const command = newCommand({
    name: "update",
    summary: "Change a schedule. Flags that are not given change nothing; lists are replaced.",
    examples: [
      'schedules update nightly-report --cron "30 3 * * *"',
      "schedules update nightly-report --missed all --missed-limit 10",
      "schedules update nightly-report --unset until,exclude",
    ],
  })
    .argument("<name>", "name of the schedule", readName)
    .option("--job <name>", "another job", (text) => refusing(() => requireName(text, "--job")));
  withScheduleOptions(command).option(
    "--unset <names>",
    `remove these, separated by commas: ${UNSETTABLE.join(", ")}`,
    readUnset,
  );
  return act<UpdateFlags>(
    withConfigOption(withByOption(command)),
    call,
    async (flags, name = "") => {
      const { shell } = call;
      refuseMistakes(flags);
      return withInstance(
        { flags, purpose: "existing", needsCode: true, shell },
        async (holdfast) => {
          const { before, upserted } = await changed(holdfast, name, flags);
          const isChanged = upserted.schedule.version !== before.version;
          await sayUpserted({ upserted, outcome: isChanged ? "changed" : "is unchanged", shell });
          const note = isChanged ? codeNote(before, "changed") : null;
          if (note !== null) await shell.say(note);
          return EXIT.done;
        },
      );
    },
  );
}

type Changed = { readonly before: Schedule; readonly upserted: Upserted };

/** Reads, changes and writes at the version that was read; starts over if another writer was faster. */
async function changed(holdfast: Holdfast, name: string, flags: UpdateFlags): Promise<Changed> {
  for (let tries = 1; ; tries += 1) {
    const before = await requireSchedule(holdfast, name);
    const options = await changedOptions(before, { flags, unset: flags.unset ?? [] });
    const write = { by: actorName(flags), ifVersion: before.version };
    try {
      const upserted = await underFlagNames("schedules.upsert()", () =>
        holdfast.schedules.upsert(name, options, write),
      );
      return { before, upserted };
    } catch (error) {
      if (textProp(error, "code") !== "SCHEDULE_CHANGED" || tries === TRIES_MAX) throw error;
    }
  }
}

function refuseMistakes(flags: UpdateFlags): void {
  refuseSeveralPatterns(flags);
  const given = Object.keys(flags).filter((name) => !NO_MEMBERS.includes(name));
  if (given.length === 0) {
    throw new UsageError(
      'Name what to change, for example --cron "30 3 * * *"; --help lists the flags.',
    );
  }
  for (const name of flags.unset ?? []) {
    const member = name.replace(/-[a-z]/g, ([, letter = ""]) => letter.toUpperCase());
    if (given.includes(member)) {
      throw new UsageError(`--${name} and --unset ${name} contradict each other.`);
    }
  }
}

// `holdfast schedules delete`: the schedule fires no more; its existing runs go on.

type DeleteFlags = CommonFlags & ActorFlags;

export function schedulesDeleteCommand(call: Call): Command {
  const command = newCommand({
    name: "delete",
    summary: "Delete a schedule. Its history stays, and runs it has made go on.",
    examples: ["schedules delete nightly-report"],
  }).argument("<name>", "name of the schedule", readName);
  return act<DeleteFlags>(
    withConfigOption(withByOption(command)),
    call,
    async (flags, name = "") => {
      const { shell } = call;
      return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
        const schedule = await requireSchedule(holdfast, name);
        await aboutSchedule({ holdfast, name }, () =>
          holdfast.schedules.delete(name, { by: actorName(flags) }),
        );
        const note = codeNote(schedule, "deleted");
        await shell.say(`Schedule ${quoteShort(name)} deleted.${note === null ? "" : `\n${note}`}`);
        await shell.printJson({ name, answer: "deleted" });
        return EXIT.done;
      });
    },
  );
}

// `holdfast schedules pause`: no tick fires until it is resumed.

type PauseFlags = CommonFlags & ActorFlags & { readonly note?: string };

export function schedulesPauseCommand(call: Call): Command {
  const command = newCommand({
    name: "pause",
    summary: "Pause a schedule: its ticks are skipped until it is resumed, and never run later.",
    examples: ['schedules pause nightly-report --note "the source is being moved"'],
  })
    .argument("<name>", "name of the schedule", readName)
    .option("--note <text>", "the reason, shown to others");
  return act<PauseFlags>(
    withConfigOption(withByOption(command)),
    call,
    async (flags, name = "") => {
      const { shell } = call;
      return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
        const schedule = await aboutSchedule({ holdfast, name }, () =>
          holdfast.schedules.pause(name, flags.note, { by: actorName(flags) }),
        );
        const note = schedule.pauseNote === null ? "" : ` (${plain(schedule.pauseNote)})`;
        await shell.say(`Schedule ${quoteShort(name)} is paused${note}; runs it has made go on.`);
        await shell.printJson(schedule);
        return EXIT.done;
      });
    },
  );
}

// `holdfast schedules resume`: ends a pause, or evaluates a broken schedule again.

type ResumeFlags = CommonFlags & ActorFlags;

export function schedulesResumeCommand(call: Call): Command {
  const command = newCommand({
    name: "resume",
    summary: "Resume a paused schedule, or evaluate a broken one again.",
    examples: ["schedules resume nightly-report"],
  }).argument("<name>", "name of the schedule", readName);
  return act<ResumeFlags>(
    withConfigOption(withByOption(command)),
    call,
    async (flags, name = "") => {
      const { shell } = call;
      return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
        const schedule = await aboutSchedule({ holdfast, name }, () =>
          holdfast.schedules.resume(name, { by: actorName(flags) }),
        );
        const { status } = schedule;
        await shell.say(`Schedule ${quoteShort(name)} is ${status}. ${nextText(schedule)}`);
        await shell.printJson(schedule);
        return EXIT.done;
      });
    },
  );
}

// `holdfast schedules plan`: shows what `apply` would change, and which upcoming ticks would move.

export function schedulesPlanCommand(call: Call): Command {
  const command = newCommand({
    name: "plan",
    summary: "Show what apply would change; exit code 1 if something would.",
    examples: ["schedules plan", "schedules plan jobs/holdfast.config.mjs --json"],
  }).argument("[config]", "configuration file (default: the one in this folder)");
  return act<CommonFlags>(command, call, async (given, config) => {
    const { shell } = call;
    const flags = withConfig(given, requireConfig(config));
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const changes = await plannedChanges(holdfast, await holdfast.schedules.plan());
      await shell.say(planPage(changes, { colours: shell.colours, isDone: false }));
      await shell.printJson({ changes });
      return changes.some(({ isEffective }) => isEffective) ? EXIT.no : EXIT.done;
    });
  });
}

// `holdfast schedules apply`: stores the schedules that the code declares, even over a newer definition: a rollback.

export function schedulesApplyCommand(call: Call): Command {
  const command = newCommand({
    name: "apply",
    summary: "Bring the database up to the schedules that the configuration file declares.",
    examples: ["schedules apply", "schedules apply jobs/holdfast.config.mjs"],
  }).argument("[config]", "configuration file (default: the one in this folder)");
  return act<CommonFlags>(command, call, async (given, config) => {
    const { shell } = call;
    const flags = withConfig(given, requireConfig(config));
    return withInstance({ flags, purpose: "add", shell }, async (holdfast) => {
      // Read first: afterwards, schedules that `apply` paused look like those that were paused before.
      const changes = await plannedChanges(holdfast, await holdfast.schedules.plan());
      await holdfast.schedules.apply();
      await shell.say(planPage(changes, { colours: shell.colours, isDone: true }));
      await shell.printJson({ changes });
      return EXIT.done;
    });
  });
}
