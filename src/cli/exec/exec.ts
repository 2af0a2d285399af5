// One program as one run: it holds a lease while the program lives, keeps its output as log lines and its
// exit code as its end. The program is started by this very process and by no other worker, so each call
// takes a seat of that name, which is a lock and a queue of its own; with --lock there is one seat only.

import { hostname } from "node:os";
import type { Holdfast } from "../../holdfast.js";
import type { HeldLock } from "../../locks/locking.js";
import { waitingText } from "../../runs/pending-reason.js";
import type { RunId } from "../../runs/rules/run.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { formatDuration } from "../../shared/duration-text.js";
import { PermanentError } from "../../shared/errors.js";
import { textProp } from "../../shared/failure.js";
import { delay } from "../../shared/ports.js";
import type { RunContext } from "../../worker/handler/context.js";
import { pauseText } from "../commands/pause.js";
import { DeclinedError, describeExit } from "../failure.js";
import { UsageError } from "../flags/usage.js";
import type { Shell } from "../shell.js";
import { type ExecEnd, GRACE_MS, type ProgramParams, performProgram } from "./program.js";

export type ExecParams = ProgramParams & {
  readonly name: string;
  readonly isLocked: boolean;
  /** With a lock: how long it is waited for. */
  readonly waitMs: number | null;
  readonly leaseMs: number;
};

export type ExecAnswer =
  | { readonly kind: "ended"; readonly runId: RunId; readonly ended: ExecEnd }
  | { readonly kind: "locked"; readonly holder: string | null; readonly until: Date | null };

const SEATS_MAX = 1_000;
const LINES_KEPT_MAX = 10_000;
/** A limit that nobody gave is none, and the table wants one. */
const TIMEOUT_NONE_MS = 365 * 86_400_000;
const BEGIN_WITHIN_MS = 30_000;
const LOST_ANSWER_MS = 5_000;
const STORE_WITHIN_MS = 60_000;

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
    const told = await performProgram(params, {
      signal: AbortSignal.any([ctx.signal, lost.signal]),
      isLost: () => lost.signal.aborted || isLeaseLost(ctx.signal),
      onLine: (stream, line) => ctx.log.info({ stream }, line),
    });
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

function isLeaseLost(signal: AbortSignal): boolean {
  return signal.aborted && textProp(signal.reason, "code") === "LEASE_LOST";
}

/** Without a run: where the database cannot be reached and the program is to be started all the same. */
export async function execAnyway(params: ExecParams): Promise<ExecEnd> {
  const { signal } = new AbortController();
  const nobody = { signal, isLost: () => false, onLine: () => undefined };
  return (await performProgram(params, nobody)).ended;
}
