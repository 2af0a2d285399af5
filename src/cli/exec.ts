// One program as one run: it holds a lease while the program lives, keeps its output as log lines and its
// exit code as its end. The program is started by this very process and by no other worker, so each call
// takes a seat of that name, which is a lock and a queue of its own; with --lock there is one seat only.

import { hostname } from "node:os";
import { type ProgramEnd, runProgram, type Stream } from "../adapters/child-process.js";
import { systemClock } from "../adapters/clock.js";
import { formatDuration } from "../core/duration-text.js";
import { PermanentError } from "../core/errors.js";
import { LastLines, OutputLines } from "../core/output-lines.js";
import { delay } from "../core/ports.js";
import type { RunId } from "../core/run.js";
import { textProp } from "../core/thrown.js";
import type { RunContext } from "../engine/context.js";
import type { Holdfast } from "../engine/holdfast.js";
import { waitingText } from "../engine/waiting-for.js";
import type { HeldLock } from "../locks/locking.js";
import { DeclinedError, describeExit } from "./failure.js";
import { pauseText } from "./pause-page.js";
import type { Shell } from "./shell.js";
import { UsageError } from "./usage.js";

export type ExecParams = {
  readonly name: string;
  readonly command: readonly string[];
  readonly isLocked: boolean;
  /** With a lock: how long it is waited for. */
  readonly waitMs: number | null;
  readonly timeoutMs: number | null;
  readonly leaseMs: number;
};

export type ExecEnd = {
  readonly exit: number;
  readonly end: ProgramEnd | null;
  /** What is to be said of it; null: the program itself has said all. */
  readonly complaint: string | null;
};

export type ExecAnswer =
  | { readonly kind: "ended"; readonly runId: RunId; readonly ended: ExecEnd }
  | { readonly kind: "locked"; readonly holder: string | null; readonly until: Date | null };

/** As timeout(1), env(1) and shells have them. */
const EXIT_TIMEOUT = 124;
const EXIT_NOT_RUNNABLE = 126;
const EXIT_NOT_FOUND = 127;
const EXIT_LEASE_LOST = 3;
const EXIT_OF_SIGNAL = 128;

const SEATS_MAX = 1_000;
const LINES_KEPT_MAX = 10_000;
const LINES_IN_ERROR = 10;
/** After SIGTERM; shorter than the 30 s that a cancelled run has. */
const GRACE_MS = 10_000;
/** A limit that nobody gave is none, and the table wants one. */
const TIMEOUT_NONE_MS = 365 * 86_400_000;
const BEGIN_WITHIN_MS = 30_000;
const LOST_ANSWER_MS = 5_000;
const STORE_WITHIN_MS = 60_000;
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

export async function execAsRun(
  holdfast: Holdfast,
  params: ExecParams,
  shell: Shell,
): Promise<ExecAnswer> {
  const { name, isLocked, waitMs, leaseMs } = params;
  const program = declare(holdfast, params);
  const wait = waitMs === null ? {} : { wait: waitMs };
  let seen: Seated | null = null;
  for (let seat = 0; seat < SEATS_MAX; seat += 1) {
    const lock = seat === 0 ? `exec:${name}` : `exec:${name}#${seat}`;
    const queue = seat === 0 ? "exec" : `exec-${seat}`;
    const work = async (held: HeldLock) => {
      if (isLocked && held.fence === null)
        throw new DeclinedError(
          "--lock cannot be kept: locks are switched off (HOLDFAST_LOCKING_ENABLED, or `locking` in code). Nothing was started.",
          "START_REFUSED",
        );
      held.signal.addEventListener("abort", program.lockLost);
      seen = await seated({ holdfast, name, queue, program, shell });
      return seen;
    };
    const answer = await holdfast
      .lock(lock, { lease: leaseMs, ...wait }, work)
      .catch((error: unknown) => {
        program.close();
        // What became of the lock when the program had ended changes nothing about the program.
        if (seen) return { acquired: true, value: seen as Seated } as const;
        throw error;
      });
    if (answer.acquired) return { kind: "ended", ...answer.value };
    if (isLocked) return { kind: "locked", holder: answer.holder, until: answer.until };
  }
  throw new DeclinedError(`${SEATS_MAX} programs run as ${name} already.`, "START_REFUSED");
}

type Seated = { readonly runId: RunId; readonly ended: ExecEnd };

type Program = {
  /** The run that the program is of, once it has begun. */
  readonly begun: Promise<RunId>;
  readonly ended: Promise<ExecEnd>;
  readonly input: unknown;
  readonly lockLost: () => void;
  /** From now on it does not begin. */
  readonly close: () => void;
};

/** The job of that name, whose one run is this program. */
function declare(holdfast: Holdfast, params: ExecParams): Program {
  const { name, command, timeoutMs, leaseMs } = params;
  const lost = new AbortController();
  let isClosed = false;
  let begin: (id: RunId) => void = () => undefined;
  let end: (ended: ExecEnd) => void = () => undefined;
  const begun = new Promise<RunId>((resolve) => {
    begin = resolve;
  });
  const ended = new Promise<ExecEnd>((resolve) => {
    end = resolve;
  });
  const run = async (_: unknown, ctx: RunContext) => {
    if (isClosed)
      throw new PermanentError("The process that made this run gave up before it began.");
    begin(ctx.runId);
    const told = await perform(params, ctx, lost.signal);
    end(told.ended);
    if (told.failure) throw told.failure;
    return told.result;
  };
  try {
    holdfast.job(name, {
      run: run as never,
      lease: leaseMs,
      timeout: (timeoutMs ?? TIMEOUT_NONE_MS) + 2 * GRACE_MS,
      // Whoever wrote the line decides when it runs again.
      retry: { attempts: 1 },
      onLost: "fail",
      logs: { keep: "all", max: LINES_KEPT_MAX },
    });
  } catch (error) {
    if (textProp(error, "code") !== "JOB_DUPLICATE") throw error;
    throw new UsageError(
      `${name} is the name of a job in the configuration file; give the program another one.`,
    );
  }
  return {
    begun,
    ended,
    input: { command, host: hostname() },
    lockLost: () => lost.abort(),
    close: () => {
      isClosed = true;
    },
  };
}

/** In a seat nobody else makes runs: what waits there is of a process that died before it began. */
async function seated(params: {
  readonly holdfast: Holdfast;
  readonly name: string;
  readonly queue: string;
  readonly program: Program;
  readonly shell: Shell;
}): Promise<Seated> {
  const { holdfast, name, queue, program, shell } = params;
  const paused = await holdfast.paused();
  if (paused)
    throw new DeclinedError(
      `Not started: everything is paused ${pauseText(paused)}. To lift it: holdfast resume --all`,
      "NOT_BEGUN",
    );
  const { runs } = await holdfast.runs.list({ job: name, status: "pending" });
  for (const orphan of runs) if (orphan.queue === queue) await holdfast.runs.cancel(orphan.id);
  const worker = { concurrency: 1, jobs: [name], queues: [queue] };
  await holdfast.start({ scheduler: false, worker });
  const id = await enqueued(holdfast, { name, queue, program });
  const patience = new AbortController();
  const hasBegun = await Promise.race([
    program.begun.then(() => true),
    delay(systemClock, BEGIN_WITHIN_MS, patience.signal).then(() => false),
  ]);
  patience.abort();
  if (!hasBegun) throw await notBegun(holdfast, id);
  const ended = await program.ended;
  await holdfast.runs.wait(id, { timeout: STORE_WITHIN_MS }).catch((error: unknown) => {
    const why = describeExit(error)?.message ?? "";
    shell.complain(`The end of run ${id} could not be stored; it will show as lost.\n${why}`);
  });
  return { runId: id, ended };
}

/** An answer that was lost on its way: the run is there if the program begins. */
async function enqueued(
  holdfast: Holdfast,
  { name, queue, program }: { name: string; queue: string; program: Program },
): Promise<RunId> {
  try {
    return (await holdfast.enqueue(name, program.input, { queue })).id;
  } catch (error) {
    const patience = new AbortController();
    const late = delay(systemClock, LOST_ANSWER_MS, patience.signal).then(() => null);
    const id = await Promise.race([program.begun, late]);
    patience.abort();
    if (id === null) throw error;
    return id;
  }
}

async function notBegun(holdfast: Holdfast, id: RunId): Promise<DeclinedError> {
  const run = await holdfast.runs.get(id);
  await holdfast.runs.cancel(id);
  const why = run?.waitingFor ? `: ${waitingText(run.waitingFor)}` : "";
  const within = formatDuration(BEGIN_WITHIN_MS);
  return new DeclinedError(
    `Run ${id} was not begun within ${within}${why}. It is cancelled, and nothing was started.`,
    "NOT_BEGUN",
  );
}

type Told = {
  readonly ended: ExecEnd;
  readonly result: unknown;
  readonly failure: Error | null;
};

async function perform(params: ExecParams, ctx: RunContext, lockLost: AbortSignal): Promise<Told> {
  const { command, timeoutMs } = params;
  const [file = "", ...args] = command;
  const last = new LastLines(LINES_IN_ERROR);
  const lines = { stdout: new OutputLines(), stderr: new OutputLines() };
  const keep = (stream: Stream, text: readonly string[]) => {
    for (const line of text) {
      ctx.log.info({ stream }, line);
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
      signal: AbortSignal.any([ctx.signal, lockLost]),
      onStarted: (pass) => stopPassing.push(passSignalsOn(pass)),
      async onOutput(stream, chunk) {
        keep(stream, lines[stream].feed(chunk));
        await writeThrough(stream, chunk);
      },
    });
    for (const stream of ["stdout", "stderr"] as const) keep(stream, lines[stream].end());
    return judge(params, end, last.text, lockLost.aborted || isLeaseLost(ctx.signal));
  } catch (error) {
    return notStarted(file, error);
  } finally {
    for (const stop of stopPassing) stop();
  }
}

function judge(params: ExecParams, end: ProgramEnd, last: string, isLost: boolean): Told {
  const { exitCode, signal, durationMs } = end;
  const exit = exitCode ?? EXIT_OF_SIGNAL + (SIGNAL_NUMBERS[signal ?? ""] ?? 0);
  const fail = (told: { exit: number; code: string; text: string; isSaid: boolean }): Told => ({
    ended: { exit: told.exit, end, complaint: told.isSaid ? told.text : null },
    result: null,
    failure: new PermanentError(last === "" ? told.text : `${told.text}\n${last}`, {
      code: told.code,
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

function notStarted(file: string, error: unknown): Told {
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

function isLeaseLost(signal: AbortSignal): boolean {
  return signal.aborted && textProp(signal.reason, "code") === "LEASE_LOST";
}

/** Without a run: where the database cannot be reached and the program is to be started all the same. */
export async function execAnyway(params: ExecParams): Promise<ExecEnd> {
  const { command, timeoutMs } = params;
  const [file = "", ...args] = command;
  const stopPassing: (() => void)[] = [];
  try {
    const end = await runProgram({
      file,
      args,
      isReading: true,
      graceMs: GRACE_MS,
      timeoutMs,
      signal: new AbortController().signal,
      onStarted: (pass) => stopPassing.push(passSignalsOn(pass)),
      onOutput: writeThrough,
    });
    return judge(params, end, "", false).ended;
  } catch (error) {
    return notStarted(file, error).ended;
  } finally {
    for (const stop of stopPassing) stop();
  }
}

/** The program waits for whoever reads; one who reads no more keeps it from nothing. */
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
