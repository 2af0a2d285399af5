// Executes the job `shell`: runs one of the configured programs. Its output is kept with the run; an exit code other than 0
// is a failure. The module that starts programs is loaded on first use, so that runtimes without it can run the rest.

import type { JobOptions } from "../runs/rules/job.js";
import { PermanentError } from "../shared/errors.js";
import { textProp } from "../shared/failure.js";
import { LastLines, OutputLines } from "../shared/output-lines.js";
import type { RunContext } from "../worker/handler/context.js";
import { type BuiltInJobs, chosenInput, nameOf, type ShellCommand } from "./built-in-jobs.js";

type Input = { readonly command: string };
type Result = { readonly exitCode: 0; readonly durationMs: number; readonly output: string };

const LINES_IN_RESULT = 20;
/** Shorter than the grace of a stopped run before its attempt is given up. */
const GRACE_MS = 4_000;
const WHY_NOT_STARTED: Record<string, string> = {
  ENOENT: "there is no such program or folder",
  EACCES: "this user may not run it",
};

export function shellJob({ commands, job }: NonNullable<BuiltInJobs["shell"]>): JobOptions & {
  readonly run: (input: Input, ctx: RunContext) => Promise<Result>;
} {
  return {
    // Repeating a program may do harm: its owner opts in with `retry`.
    retry: { attempts: 1 },
    onLost: "fail",
    ...job,
    input: chosenInput<Input>({ command: nameOf("commands", [...commands.keys()]) }),
    run({ command }, ctx) {
      // The input was checked against this list.
      return perform(commands.get(command) as ShellCommand, ctx);
    },
  };
}

async function perform(command: ShellCommand, ctx: RunContext): Promise<Result> {
  const { runProgram } = await import("../shared/adapters/child-process.js");
  const last = new LastLines(LINES_IN_RESULT);
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

/** The variables that programs need: paths, user, language and time zone. */
const ENVIRONMENT: ReadonlySet<string> = new Set([
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TERM", "TZ", "LANG", "LANGUAGE"],
  ...["TMPDIR", "TEMP", "TMP"],
  // Windows does not start a program without them.
  ...["SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA"],
]);

/** Other variables of this process may hold secrets of the application, and are not passed on. */
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

/** Has no known class, so it is retried while attempts are left. */
class ProgramError extends Error {
  override readonly name = "ProgramError";
  readonly code: string;
  constructor(message: string, end: { readonly code: string; readonly output: string }) {
    super(end.output === "" ? message : `${message}\n${end.output}`);
    this.code = end.code;
  }
}
