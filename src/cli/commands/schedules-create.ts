// `holdfast schedules create`: makes a schedule. One that is there already is left alone.

import type { Command } from "commander";
import type { UpsertOptions } from "../../schedules/options.js";
import { requireName } from "../../shared/names.js";
import { quoteShort } from "../../shared/suggest.js";
import { textProp } from "../../shared/thrown.js";
import { type AskerFlags, askedBy, withByOption } from "../actor.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { DeclinedError } from "../failure.js";
import { readName } from "../flags/names.js";
import { underFlagNames } from "../flags/refused.js";
import {
  optionsOf,
  requirePattern,
  type ScheduleFlags,
  withScheduleOptions,
} from "../flags/schedules.js";
import { refusing, UsageError } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { sayUpserted } from "../output/schedule-saved.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & ScheduleFlags & AskerFlags;

export function schedulesCreateCommand(call: Call): Command {
  const command = newCommand({
    name: "create",
    summary: "Make a schedule. One of that name that exists is left alone; use update for it.",
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
    .option("--monitor", "instead of a job: something elsewhere runs, and checks in here");
  withByOption(withScheduleOptions(command));
  return act<Flags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    requireJob(flags);
    requirePattern(flags);
    const options = (await optionsOf(flags)) as UpsertOptions;
    return withInstance({ flags, purpose: "add", shell }, async ({ schedules }) => {
      if (await schedules.get(name)) throw exists(name);
      const asked = { by: askedBy(flags), ifVersion: 0 };
      const upserted = await underFlagNames("schedules.upsert()", () =>
        schedules.upsert(name, options, asked),
      ).catch((error: unknown) => {
        throw textProp(error, "code") === "SCHEDULE_CHANGED" ? exists(name) : error;
      });
      await sayUpserted({ upserted, said: "created", shell });
      return EXIT.done;
    });
  });
}

function requireJob({ job, monitor }: Flags): void {
  if (job !== undefined && monitor)
    throw new UsageError("--job and --monitor exclude each other; give one of them.");
  if (job === undefined && !monitor)
    throw new UsageError(
      "Say what it runs: --job report; or --monitor, if something elsewhere runs and checks in.",
    );
}

function exists(name: string): DeclinedError {
  const shown = quoteShort(name);
  return new DeclinedError(
    `There is a schedule ${shown} already; nothing was changed. ` +
      `To change it: holdfast schedules update ${shown} …`,
    "SCHEDULE_EXISTS",
  );
}
