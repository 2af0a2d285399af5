// `holdfast start`: one instance in production, until a signal comes.

import type { Command } from "commander";
import { HEARTBEATS, type Heartbeat, type StartOptions } from "../../instance/config.js";
import { requireName } from "../../shared/names.js";
import { act, type Call, newCommand } from "../command.js";
import { UsageError } from "../failure.js";
import { FlagErrors } from "../flags/errors.js";
import { oneOf, refusing, wholeNumber } from "../flags/read.js";
import { type CommonFlags, loadInstance } from "../instance.js";
import { readPlace, type ServeFlags, workUntilSignal } from "../work.js";

const GRACE_MS = 25_000;

export type WorkFlags = CommonFlags &
  ServeFlags & {
    readonly scheduler: boolean;
    readonly worker: boolean;
    readonly queues?: readonly string[];
    readonly concurrency?: number;
    readonly heartbeat?: Heartbeat;
  };

export function startCommand(call: Call): Command {
  const command = newCommand({
    name: "start",
    summary:
      "Run an instance: fire schedules, execute runs of the jobs in the configuration file, serve HTTP.",
    examples: [
      "start",
      "start jobs/holdfast.config.mjs --queues mail,default --concurrency 20",
      "start --no-worker --host 0.0.0.0 --port 8080",
    ],
  });
  const action = async (flags: WorkFlags, config?: string) => {
    const { shell } = call;
    const errors = new FlagErrors(call.wrong);
    const start = errors.read(() => startOptions(flags), {});
    const place = errors.read(() => readPlace(flags, process.env), null);
    const holdfast = await errors.load((problems) =>
      loadInstance({ flags: withConfig(flags, config), shell, problems }),
    );
    return workUntilSignal({
      holdfast,
      start,
      place,
      isDevelopment: false,
      graceMs: GRACE_MS,
      shell,
    });
  };
  return act<WorkFlags>(withWorkOptions(command), call, action, { reportsFlagErrors: true });
}

export function withWorkOptions(command: Command): Command {
  return command
    .argument("[config]", "configuration file (default: the one in this folder)")
    .option("--no-scheduler", "do not fire schedules")
    .option("--no-worker", "do not execute runs")
    .option("--no-http", "do not serve HTTP")
    .option(
      "--host <host>",
      "the host that HTTP listens on (default: HOLDFAST_HOST, else 127.0.0.1)",
    )
    .option(
      "--port <port>",
      "the port of HTTP; 0 means any free one (default: HOLDFAST_PORT, else 4780)",
      wholeNumber({ min: 0, max: 65_535 }),
    )
    .option("--queues <names>", "only these queues, separated by commas", readQueues)
    .option(
      "--concurrency <count>",
      "how many runs at the same time (default: 10)",
      wholeNumber({ min: 1, max: 10_000 }),
    )
    .option(
      "--heartbeat <from>",
      "send heartbeats from the main thread or a separate one: main, thread",
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
  if (!flags.worker && !flags.scheduler && !flags.http) {
    throw new UsageError("--no-worker, --no-scheduler and --no-http together leave nothing to do.");
  }
  if (!flags.http && (flags.host !== undefined || flags.port !== undefined))
    throw new UsageError("--no-http and --host or --port contradict each other.");
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
