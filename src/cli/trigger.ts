// What `trigger` and `test` do: ask for a run of a schedule, say its id or why there is none, and wait
// for its end where asked.

import type { TriggerOptions } from "../schedules/options.js";
import type { Triggered } from "../schedules/trigger.js";
import { type AskerFlags, askedBy } from "./actor.js";
import { readInput } from "./flags/input.js";
import { aboutSchedule } from "./flags/names.js";
import { UsageError } from "./flags/usage.js";
import { type CommonFlags, withInstance } from "./instance.js";
import { shortTime } from "./output/times.js";
import { EXIT, plain, type Shell } from "./shell.js";
import { waitForRun } from "./wait.js";

export type WaitFlags = { readonly wait?: boolean; readonly timeout?: number };

export async function trigger(params: {
  readonly name: string;
  readonly options: TriggerOptions;
  readonly flags: CommonFlags & AskerFlags & WaitFlags & { readonly input?: string };
  readonly shell: Shell;
}): Promise<number> {
  const { name, flags, shell } = params;
  const { wait, timeout } = flags;
  if (timeout !== undefined && !wait) throw new UsageError("--timeout limits --wait; give both.");
  const options = {
    ...params.options,
    ...(flags.input === undefined ? {} : { input: await readInput(flags.input) }),
    by: askedBy(flags),
  };
  return withInstance({ flags, purpose: "add", shell }, async (holdfast) => {
    const answer = await aboutSchedule({ holdfast, name }, () =>
      holdfast.schedules.trigger(name, options),
    );
    if (answer.skipped) {
      await shell.say(`skipped: ${skippedText(answer)}`);
      await shell.answer(answer);
      return EXIT.no;
    }
    const { runId: id } = answer;
    await shell.say(`Run ${id} stored.`);
    if (wait) return waitForRun({ holdfast, id, answer, timeout, shell });
    await shell.answer(answer);
    return EXIT.done;
  });
}

function skippedText(skipped: Extract<Triggered, { readonly skipped: true }>): string {
  const { reason, holder, until, nextAt } = skipped;
  const next = nextAt === null ? "no tick follows" : `the next tick is ${shortTime(nextAt)}`;
  switch (reason) {
    case "locked":
      if (holder === null) return "locked by a run that waits";
      return `locked by ${plain(holder)}${until === null ? "" : ` until ${shortTime(until)}`}`;
    case "paused":
      return "paused";
    case "not_due":
      return `not due; ${next}`;
  }
}
