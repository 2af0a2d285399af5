// `holdfast start`: one instance in production, until a signal comes.

import type { Command } from "commander";
import { requireName } from "../../core/names.js";
import { HEARTBEATS, type Heartbeat, type StartOptions } from "../../engine/config.js";
import { act, type Call, newCommand } from "../command.js";
import { type CommonFlags, loadInstance } from "../instance.js";
import { oneOf, refusing, UsageError, wholeNumber } from "../usage.js";
import { workUntilSignal } from "../work.js";

const GRACE_MS = 25_000;

export type WorkFlags = CommonFlags & {
  readonly scheduler: boolean;
  readonly worker: boolean;
  readonly queues?: readonly string[];
  readonly concurrency?: number;
  readonly heartbeat?: Heartbeat;
};

export function startCommand(call: Call): Command {
  const command = newCommand({
    name: "start",
    summary: "Run an instance: claim runs of the jobs in the configuration file and execute them.",
    examples: [
      "start",
      "start jobs/holdfast.config.mjs --queues mail,default --concurrency 20",
      "start --no-worker",
    ],
  });
  return act<WorkFlags>(withWorkOptions(command), call, async (flags, config) => {
    const start = startOptions(flags);
    const holdfast = await loadInstance({ flags: withConfig(flags, config), shell: call.shell });
    return workUntilSignal({ holdfast, start, graceMs: GRACE_MS, shell: call.shell });
  });
}

export function withWorkOptions(command: Command): Command {
  return command
    .argument("[config]", "configuration file (default: the one in this folder)")
    .option("--no-scheduler", "fire no schedules")
    .option("--no-worker", "execute nothing")
    .option("--queues <names>", "only these queues, separated by commas", readQueues)
    .option(
      "--concurrency <count>",
      "runs at the same time (default: 10)",
      wholeNumber({ min: 1, max: 10_000 }),
    )
    .option(
      "--heartbeat <from>",
      "heartbeats from the main thread or one of their own: main, thread",
      oneOf(HEARTBEATS),
    );
}

export function withConfig(flags: CommonFlags, config: string | undefined): CommonFlags {
  return config === undefined ? flags : { ...flags, config };
}

/** Left out is left to the environment. */
export function startOptions(flags: WorkFlags): StartOptions {
  const { queues, concurrency, heartbeat } = flags;
  const workerFlags = [
    ...(queues === undefined ? [] : ["--queues"]),
    ...(concurrency === undefined ? [] : ["--concurrency"]),
    ...(heartbeat === undefined ? [] : ["--heartbeat"]),
  ];
  if (!flags.worker && workerFlags.length > 0) {
    throw new UsageError(`--no-worker and ${workerFlags.join(", ")} contradict each other.`);
  }
  if (!flags.worker && !flags.scheduler) {
    throw new UsageError("--no-worker and --no-scheduler together leave nothing to do.");
  }
  const worker = {
    ...(queues === undefined ? {} : { queues }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(heartbeat === undefined ? {} : { heartbeat }),
  };
  return {
    ...(flags.scheduler ? {} : { scheduler: false }),
    ...(flags.worker ? {} : { worker: false }),
    ...(workerFlags.length === 0 ? {} : { worker }),
  };
}

function readQueues(text: string): readonly string[] {
  return text.split(",").map((name) => refusing(() => requireName(name, "--queues")));
}
