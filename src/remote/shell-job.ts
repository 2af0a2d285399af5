// The job `shell`: runs one of the programs that the configuration lists. Its lines are kept with the run;
// an exit code other than 0 is a failure. What starts programs is loaded when the first one starts: a
// process that never does, or cannot, is not asked to have it.

import type { JobOptions } from "../runs/rules/job.js";
import { PermanentError } from "../shared/errors.js";
import { textProp } from "../shared/failure.js";
import { LastLines, OutputLines } from "../shared/output-lines.js";
import type { RunContext } from "../worker/handler/context.js";
import { type BuiltInJobs, chosenInput, nameOf, type ShellCommand } from "./built-in-jobs.js";

type Input = { readonly command: string };
type Result = { readonly exitCode: 0; readonly durationMs: number; readonly output: string };

const LINES_IN_ANSWER = 20;
/** Less than the time that a run has between being told to stop and being given up. */
const GRACE_MS = 4_000;
const WHY_NOT_STARTED: Record<string, string> = {
  ENOENT: "there is no such program or folder",
  EACCES: "this user may not run it",
};

export function shellJob({ commands, job }: NonNullable<BuiltInJobs["shell"]>): JobOptions & {
  readonly run: (input: Input, ctx: RunContext) => Promise<Result>;
} {
  return {
    // A program is not known to be harmless when it is repeated: its owner says so by `retry`.
    retry: { attempts: 1 },
    onLost: "fail",
    ...job,
    input: chosenInput<Input>({ command: nameOf("commands", [...commands.keys()]) }),
    run({ command }, ctx) {
      // The input was checked against this very list.
      return perform(commands.get(command) as ShellCommand, ctx);
    },
  };
}

async function perform(command: ShellCommand, ctx: RunContext): Promise<Result> {
  const { runProgram } = await import("../shared/adapters/child-process.js");
  const last = new LastLines(LINES_IN_ANSWER);
  const lines = { stdout: new OutputLines(), stderr: new OutputLines() };
  const keep = (stream: keyof typeof lines, text: readonly string[]) => {
    for (const line of text) {
      ctx.log.info({ stream }, line);
      last.add(line);
    }
  };
  const { file, args, folder, timeoutMs } = command;
  const end = await runProgram({
    file,
    args,
    ...(folder === undefined ? {} : { folder }),
    env: environmentFor(command, process.env),
    timeoutMs,
    graceMs: GRACE_MS,
    signal: ctx.signal,
    onOutput: (stream, chunk) => keep(stream, lines[stream].feed(chunk)),
  }).catch((error: unknown) => {
    const code = textProp(error, "code") ?? "";
    const why = WHY_NOT_STARTED[code] ?? (code || String(error));
    throw new PermanentError(`${file} could not be started: ${why}.`, {
      code: "NOT_STARTED",
    });
  });
  for (const stream of ["stdout", "stderr"] as const) keep(stream, lines[stream].end());
  const { exitCode, signal, endedBy, durationMs } = end;
  if (exitCode === 0 && endedBy === "itself") return { exitCode, durationMs, output: last.text };
  throw new ProgramError(wordsFor(end), {
    code: endedBy === "timeout" ? "TIMEOUT" : (signal ?? `EXIT_${exitCode}`),
    output: last.text,
  });
}

/** What programs need to run at all: where programs and files are, who runs them, in which language and zone. */
const ENVIRONMENT: ReadonlySet<string> = new Set([
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TERM", "TZ", "LANG", "LANGUAGE"],
  ...["TMPDIR", "TEMP", "TMP"],
  // Windows does not start a program without them.
  ...["SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA"],
]);

/** The rest of this process's environment holds the secrets of the application, which no program of a list needs. */
function environmentFor(
  { env, inheritEnv }: ShellCommand,
  own: NodeJS.ProcessEnv,
): Readonly<Record<string, string | undefined>> {
  const isPassed = (name: string) =>
    ENVIRONMENT.has(name.toUpperCase()) || name.startsWith("LC_") || inheritEnv.includes(name);
  const passed = Object.entries(own).filter(([name]) => isPassed(name));
  return { ...Object.fromEntries(passed), ...env };
}

function wordsFor(end: {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly endedBy: string;
}): string {
  if (end.endedBy === "timeout")
    return "The program was ended: it took longer than its time limit.";
  if (end.endedBy === "abort") return "The program was ended with its run.";
  return end.signal === null
    ? `The program ended with exit code ${end.exitCode}.`
    : `The program was ended by ${end.signal}.`;
}

/** Of no class that the library knows: retried, where the job has attempts left. */
class ProgramError extends Error {
  override readonly name = "ProgramError";
  readonly code: string;
  constructor(message: string, told: { readonly code: string; readonly output: string }) {
    super(told.output === "" ? message : `${message}\n${told.output}`);
    this.code = told.code;
  }
}
