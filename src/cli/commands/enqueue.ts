// `holdfast enqueue`: stores one run, and with --wait waits for its end.

import type { Command } from "commander";
import type { EnqueueOptions } from "../../runs/enqueue.js";
import { requireKey, requireName, requirePriority, requireTags } from "../../shared/names.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { UsageError } from "../failure.js";
import {
  readDurationFlag,
  readInput,
  readInstantFlag,
  refusing,
  wholeNumber,
} from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { waitForRun } from "../output/runs.js";
import { EXIT } from "../shell.js";

type Flags = CommonFlags & {
  readonly key?: string;
  readonly at?: Date;
  readonly delay?: number;
  readonly priority?: number;
  readonly queue?: string;
  readonly tag?: readonly string[];
  readonly wait?: boolean;
  readonly timeout?: number;
};

export function enqueueCommand(call: Call): Command {
  const command = newCommand({
    name: "enqueue",
    summary: "Store one run of a job.",
    examples: [
      `enqueue send-mail '{"to":"ada@example.com"}' --key welcome-ada`,
      `enqueue market-study '{"market":"eu"}' --delay 10m --tag nightly`,
      "cat input.json | holdfast enqueue market-study - --wait",
    ],
  })
    .argument("<job>", "name of the job", (name) => refusing(() => requireName(name, "job")))
    .argument("<json>", "its input as JSON, or - to read it from standard input")
    .option("--key <key>", "the same key with the same input is the same run", (text) =>
      refusing(() => requireKey(text, "--key")),
    )
    .option(
      "--at <time>",
      "not before this time, for example 2030-01-31T09:00:00Z",
      readInstantFlag,
    )
    .option("--delay <duration>", "not before this much time has passed", readDurationFlag)
    .option("--priority <number>", "-100 … 100; larger is more urgent", (text) =>
      refusing(() => requirePriority(wholeNumber({ min: -100, max: 100 })(text), "--priority")),
    )
    .option("--queue <name>", "a queue other than the job's own", (text) =>
      refusing(() => requireName(text, "--queue")),
    )
    .option("--tag <tag>", "may be given several times", (text, before: readonly string[] = []) =>
      refusing(() => requireTags([...before, text], "--tag")),
    )
    .option("--wait", "wait until the run has ended; exit code 1 if it did not complete")
    .option("--timeout <duration>", "with --wait: wait no longer than this", readDurationFlag);
  return act<Flags>(withConfigOption(command), call, async (flags, job = "", json = "") => {
    const { shell } = call;
    refuseContradictions(flags);
    const input = await readInput(json);
    return withInstance({ flags, purpose: "add", shell }, async (holdfast) => {
      const enqueued = await holdfast.enqueue(job, input, enqueueOptions(flags));
      const { id, deduplicated } = enqueued;
      await shell.say(deduplicated ? `Run ${id} already has this key.` : `Run ${id} stored.`);
      if (flags.wait)
        return waitForRun({ holdfast, id, document: enqueued, timeout: flags.timeout, shell });
      await shell.printJson(enqueued);
      return EXIT.done;
    });
  });
}

function refuseContradictions({ at, delay, wait, timeout }: Flags): void {
  if (at !== undefined && delay !== undefined) {
    throw new UsageError("--at and --delay exclude each other; give only one.");
  }
  if (timeout !== undefined && !wait) {
    throw new UsageError("--timeout limits --wait; give both, or use --delay to run later.");
  }
}

function enqueueOptions({ key, at, delay, priority, queue, tag }: Flags): EnqueueOptions {
  return {
    ...(key === undefined ? {} : { key }),
    ...(at === undefined ? {} : { at }),
    ...(delay === undefined ? {} : { delay }),
    ...(priority === undefined ? {} : { priority }),
    ...(queue === undefined ? {} : { queue }),
    ...(tag === undefined ? {} : { tags: tag }),
  };
}
