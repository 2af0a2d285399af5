// `holdfast schedules update`: changes the given members of a schedule; the others stay as they are.

import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import type { Upserted } from "../../schedules/options.js";
import type { Schedule } from "../../schedules/view.js";
import { requireName } from "../../shared/names.js";
import { textProp } from "../../shared/thrown.js";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName, requireSchedule } from "../flags/names.js";
import { underFlagNames } from "../flags/refused.js";
import {
  changedOptions,
  readUnset,
  refuseSeveralPatterns,
  type ScheduleFlags,
  UNSETTABLE,
  type Unsettable,
  withScheduleOptions,
} from "../flags/schedules.js";
import { refusing, UsageError } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { codeNote, sayUpserted } from "../output/schedule-saved.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & ScheduleFlags & AskerFlags & { readonly unset?: readonly Unsettable[] };

/** Somebody else is at the same schedule so often only if something is wrong. */
const TRIES_MAX = 50;

/** Flags that say how it is done, not what the schedule is to be. */
const NO_MEMBERS = ["database", "json", "config", "by"];

export function schedulesUpdateCommand(call: Call): Command {
  const command = newCommand({
    name: "update",
    summary: "Change a schedule. What is not given stays; lists that are given are replaced.",
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
    `do without these, separated by commas: ${UNSETTABLE.join(", ")}`,
    readUnset,
  );
  return act<Flags>(withConfigOption(withByOption(command)), call, async (flags, name = "") => {
    const { shell } = call;
    refuseMistakes(flags);
    return withInstance({ flags, purpose: "look", needsCode: true, shell }, async (holdfast) => {
      const { before, upserted } = await changed(holdfast, name, flags);
      const isChanged = upserted.schedule.version !== before.version;
      await sayUpserted({ upserted, said: isChanged ? "changed" : "was that already", shell });
      const note = isChanged ? codeNote(before, "changed") : null;
      if (note !== null) await shell.say(note);
      return EXIT.done;
    });
  });
}

type Changed = { readonly before: Schedule; readonly upserted: Upserted };

/** What somebody else changed between the look and the change stays: it is looked at again. */
async function changed(holdfast: Holdfast, name: string, flags: Flags): Promise<Changed> {
  for (let tries = 1; ; tries += 1) {
    const before = await requireSchedule(holdfast, name);
    const options = await changedOptions(before, { flags, unset: flags.unset ?? [] });
    const asked = { by: askedBy(flags), ifVersion: before.version };
    try {
      const upserted = await underFlagNames("schedules.upsert()", () =>
        holdfast.schedules.upsert(name, options, asked),
      );
      return { before, upserted };
    } catch (error) {
      if (textProp(error, "code") !== "SCHEDULE_CHANGED" || tries === TRIES_MAX) throw error;
    }
  }
}

function refuseMistakes(flags: Flags): void {
  refuseSeveralPatterns(flags);
  const given = Object.keys(flags).filter((name) => !NO_MEMBERS.includes(name));
  if (given.length === 0) {
    throw new UsageError(
      'Say what to change, for example --cron "30 3 * * *"; --help shows what there is.',
    );
  }
  for (const name of flags.unset ?? []) {
    const member = name.replace(/-[a-z]/g, ([, letter = ""]) => letter.toUpperCase());
    if (given.includes(member)) {
      throw new UsageError(`--${name} and --unset ${name} contradict each other.`);
    }
  }
}
