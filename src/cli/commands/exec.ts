// `holdfast exec`: wraps a line of a crontab. It passes the program's output through and exits with its code; a run stores lease,
// output, exit code and duration.

import { type Command, Option } from "commander";
import { textProp } from "../../shared/failure.js";
import type { Logger } from "../../telemetry/log.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { type ExecParams, type ExecResult, execAnyway, execAsRun } from "../exec/exec.js";
import { describeExit, UsageError } from "../failure.js";
import { readDurationFlag, readName, wholeNumber } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { shortTime } from "../output/format.js";
import { EXIT, type Shell } from "../shell.js";

type Flags = CommonFlags & {
  readonly lock?: boolean;
  readonly wait?: number;
  readonly timeout?: number;
  readonly lease: number;
  readonly lockedExit: number;
  readonly anyway?: boolean;
};

const LEASE_MIN_MS = 1_000;
const LEASE_DEFAULT_MS = 120_000;

export function execCommand(call: Call): Command {
  const command = newCommand({
    name: "exec",
    summary: "Run a program as a run: stores its lease, output, exit code and duration.",
    examples: [
      "exec backup --lock --timeout 2h -- pg_dump -Fc -f /backups/app.dump app",
      "exec nightly-report -- ./report.sh --all",
    ],
  })
    .argument("<name>", "name of the job for its runs", readName)
    .argument("<command...>", "the program and its arguments, after --")
    .option("--lock", "never twice at the same time, on all machines")
    .option(
      "--wait <duration>",
      "with --lock: wait this long for the other to end",
      readDurationFlag,
    )
    .option(
      "--locked-exit <code>",
      "with --lock: the exit code if another one runs",
      wholeNumber({ min: 0, max: 255 }),
      EXIT.no,
    )
    .option(
      "--timeout <duration>",
      "end it after this time: SIGTERM, 10 s later SIGKILL",
      readDurationFlag,
    )
    .addOption(
      new Option("--lease <duration>", "how long the database may be unreachable")
        .argParser(readDurationFlag)
        .default(LEASE_DEFAULT_MS, "2m"),
    )
    .option(
      "--anyway",
      "if the database cannot be reached, run the program without storing anything",
    );
  return act<Flags>(withConfigOption(command), call, async (flags, name = "", ...rest) => {
    const params = readParams(flags, name, rest);
    const { shell } = call;
    try {
      const result = await withInstance(
        { flags, purpose: "keep", shell, logger: withoutRuns },
        (holdfast) => execAsRun(holdfast, params, shell),
      );
      return await reportResult(result, params, flags, shell);
    } catch (error) {
      return await unreachable(error, params, flags, shell);
    }
  });
}

/** Drops log lines about runs: the program's own output and exit code show how it ended. */
function withoutRuns(usual: Logger): Logger {
  const at = (level: "debug" | "info" | "warn" | "error") => (fields: object, message: string) => {
    const { event } = fields as { readonly event?: unknown };
    if (!String(event).startsWith("run.")) usual[level](fields, message);
  };
  return { debug: at("debug"), info: () => undefined, warn: at("warn"), error: at("error") };
}

function readParams(flags: Flags, name: string, command: readonly string[]): ExecParams {
  const { lock = false, wait, timeout, lease, anyway } = flags;
  if (wait !== undefined && !lock)
    throw new UsageError("--wait waits for a lock; give --lock too.");
  if (lock && anyway)
    throw new UsageError("--lock and --anyway contradict each other: the lock is in the database.");
  if (lease < LEASE_MIN_MS) throw new UsageError("--lease must be at least 1s.");
  if (timeout === 0) throw new UsageError("--timeout must be longer than nothing, for example 2h.");
  return {
    name,
    command,
    isLocked: lock,
    waitMs: wait ?? null,
    timeoutMs: timeout ?? null,
    leaseMs: lease,
  };
}

async function reportResult(
  result: ExecResult,
  { name }: ExecParams,
  flags: Flags,
  shell: Shell,
): Promise<number> {
  if (result.kind === "locked") {
    const { holder, until } = result;
    const lease = until === null ? "" : `, its lease until ${shortTime(until)}`;
    shell.complain(`Not started: ${name} runs already (held by ${holder ?? "somebody"}${lease}).`);
    await shell.printJson({ name, skipped: true, reason: "locked", holder, until });
    return flags.lockedExit;
  }
  const { runId, ended } = result;
  const { exit, end, complaint } = ended;
  if (complaint !== null) shell.complain(`${complaint} Run ${runId} has its output.`);
  await shell.printJson({
    name,
    runId,
    exitCode: end?.exitCode ?? null,
    signal: end?.signal ?? null,
    endedBy: end?.endedBy ?? null,
    durationMs: end?.durationMs ?? null,
  });
  return exit;
}

/** Nothing was started yet, whatever the reason: a lost connection later on is no error of this kind. */
async function unreachable(
  error: unknown,
  params: ExecParams,
  flags: Flags,
  shell: Shell,
): Promise<number> {
  const isStore = textProp(error, "code") === "STORE_UNAVAILABLE";
  if (!isStore) throw error;
  if (!flags.anyway) {
    shell.complain("The program was not started; --anyway starts it without the database.");
    throw error;
  }
  shell.complain(`${describeExit(error)?.message ?? ""}\nThe program is run without being kept.`);
  const { exit, end, complaint } = await execAnyway(params);
  if (complaint !== null) shell.complain(complaint);
  await shell.printJson({
    name: params.name,
    runId: null,
    exitCode: end?.exitCode ?? null,
    signal: end?.signal ?? null,
    endedBy: end?.endedBy ?? null,
    durationMs: end?.durationMs ?? null,
  });
  return exit;
}
