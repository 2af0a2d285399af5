// Starts the program of `holdfast exec`, reads its output, forwards signals and judges how it ended. It knows nothing of runs: the
// caller gets the lines and says when to stop.

import { type ProgramEnd, runProgram, type Stream } from "../../shared/adapters/child-process.js";
import { formatDuration } from "../../shared/duration.js";
import { PermanentError } from "../../shared/errors.js";
import { textProp } from "../../shared/failure.js";
import { LastLines, OutputLines } from "../../shared/output-lines.js";

export type ProgramParams = {
  readonly command: readonly string[];
  readonly timeoutMs: number | null;
};

export type ExecEnd = {
  readonly exit: number;
  readonly end: ProgramEnd | null;
  /** A message about the end; null if the program's own output is enough. */
  readonly complaint: string | null;
};

/** How it ended, for the caller and for its run. */
export type Performed = {
  readonly ended: ExecEnd;
  readonly result: unknown;
  readonly failure: Error | null;
};

export type ProgramListener = {
  readonly signal: AbortSignal;
  /** Whether the signal came because another process may do the same work. */
  isLost(): boolean;
  onLine(stream: Stream, line: string): void;
};

/** The exit codes that timeout(1), env(1) and shells use. */
const EXIT_TIMEOUT = 124;
const EXIT_NOT_RUNNABLE = 126;
const EXIT_NOT_FOUND = 127;
const EXIT_LEASE_LOST = 3;
const EXIT_OF_SIGNAL = 128;

const LINES_IN_ERROR = 10;
/** After SIGTERM; shorter than the 30 s that a cancelled run has. */
export const GRACE_MS = 10_000;
const PASSED_ON = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
};

export async function performProgram(
  params: ProgramParams,
  by: ProgramListener,
): Promise<Performed> {
  const { command, timeoutMs } = params;
  const [file = "", ...args] = command;
  const last = new LastLines(LINES_IN_ERROR);
  const lines = { stdout: new OutputLines(), stderr: new OutputLines() };
  const keep = (stream: Stream, text: readonly string[]) => {
    for (const line of text) {
      by.onLine(stream, line);
      last.add(line);
    }
  };
  const stopPassing: (() => void)[] = [];
  try {
    const end = await runProgram({
      file,
      args,
      isReading: true,
      graceMs: GRACE_MS,
      timeoutMs,
      signal: by.signal,
      onStarted: (pass) => stopPassing.push(passSignalsOn(pass)),
      async onOutput(stream, chunk) {
        keep(stream, lines[stream].feed(chunk));
        await writeThrough(stream, chunk);
      },
    });
    for (const stream of ["stdout", "stderr"] as const) keep(stream, lines[stream].end());
    return judge(params, end, { last: last.text, isLost: by.isLost() });
  } catch (error) {
    return notStarted(file, error);
  } finally {
    for (const stop of stopPassing) stop();
  }
}

function judge(
  params: ProgramParams,
  end: ProgramEnd,
  { last, isLost }: { readonly last: string; readonly isLost: boolean },
): Performed {
  const { exitCode, signal, durationMs } = end;
  const exit = exitCode ?? EXIT_OF_SIGNAL + (SIGNAL_NUMBERS[signal ?? ""] ?? 0);
  const fail = (failure: {
    exit: number;
    code: string;
    text: string;
    isSaid: boolean;
  }): Performed => ({
    ended: { exit: failure.exit, end, complaint: failure.isSaid ? failure.text : null },
    result: null,
    failure: new PermanentError(last === "" ? failure.text : `${failure.text}\n${last}`, {
      code: failure.code,
    }),
  });
  if (end.endedBy === "timeout") {
    const limit = formatDuration(params.timeoutMs ?? 0);
    const text = `The program was ended: it took longer than ${limit}.`;
    return fail({ exit: EXIT_TIMEOUT, code: "TIMEOUT", text, isSaid: true });
  }
  if (end.endedBy === "abort" && isLost) {
    const text = "The program was ended: its lease was lost, and another may be at the same work.";
    return fail({ exit: EXIT_LEASE_LOST, code: "LEASE_LOST", text, isSaid: true });
  }
  if (end.endedBy === "abort")
    return fail({
      exit,
      code: "CANCELLED",
      text: "The program was ended: its run was cancelled.",
      isSaid: true,
    });
  if (exitCode === 0)
    return {
      ended: { exit: 0, end, complaint: null },
      result: { exitCode, durationMs },
      failure: null,
    };
  const text =
    signal === null ? `It ended with exit code ${exitCode}.` : `It was ended by ${signal}.`;
  return fail({ exit, code: signal ?? `EXIT_${exitCode}`, text, isSaid: false });
}

function notStarted(file: string, error: unknown): Performed {
  const code = textProp(error, "code") ?? "";
  const why =
    code === "ENOENT" ? "there is no such program" : code === "EACCES" ? "it may not be run" : code;
  const text = `${file} could not be started: ${why || String(error)}.`;
  return {
    ended: {
      exit: code === "ENOENT" ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE,
      end: null,
      complaint: text,
    },
    result: null,
    failure: new PermanentError(text, { code: "NOT_STARTED" }),
  };
}

/** Waits for the reader of our output; a reader that left does not block the program. */
function writeThrough(stream: Stream, chunk: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    process[stream].write(chunk, () => resolve());
  });
}

function passSignalsOn(pass: (signal: NodeJS.Signals) => void): () => void {
  for (const name of PASSED_ON) process.on(name, pass);
  return () => {
    for (const name of PASSED_ON) process.off(name, pass);
  };
}
