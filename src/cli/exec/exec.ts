// Executes one program as one run for `holdfast exec`: holds a lease while the program lives, and stores its output as log lines
// and its exit code as the end. Only this process may start the program, so each call takes a seat of its own: a lock and a queue
// that no other process uses. With --lock there is only one seat.

import { hostname } from "node:os";
import type { Holdfast } from "../../holdfast.js";
import type { HeldLock } from "../../locks/locking.js";
import { waitingText } from "../../runs/pending-reason.js";
import type { RunId } from "../../runs/rules/run.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { formatDuration } from "../../shared/duration.js";
import { PermanentError } from "../../shared/errors.js";
import { textProp } from "../../shared/failure.js";
import { delay } from "../../shared/ports.js";
import type { RunContext } from "../../worker/handler/context.js";
import { pauseText } from "../commands/pause.js";
import { DeclinedError, describeExit, UsageError } from "../failure.js";
import type { Shell } from "../shell.js";
import { type ExecEnd, GRACE_MS, type ProgramParams, performProgram } from "./program.js";

export type ExecParams = ProgramParams & {
  readonly name: string;
  readonly isLocked: boolean;
  /** With a lock: how long to wait for it. */
  readonly waitMs: number | null;
  readonly leaseMs: number;
};

export type ExecResult =
  | { readonly kind: "ended"; readonly runId: RunId; readonly ended: ExecEnd }
  | { readonly kind: "locked"; readonly holder: string | null; readonly until: Date | null };

const SEATS_MAX = 1_000;
const LINES_KEPT_MAX = 10_000;
/** The table needs a timeout; this one stands for none. */
const TIMEOUT_NONE_MS = 365 * 86_400_000;
const BEGIN_WITHIN_MS = 30_000;
const LOST_RESPONSE_MS = 5_000;
const STORE_WITHIN_MS = 60_000;

export async function execAsRun(
  holdfast: Holdfast,
  params: ExecParams,
  shell: Shell,
): Promise<ExecResult> {
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
          "--lock cannot work: locks are switched off (HOLDFAST_LOCKING_ENABLED, or `locking` in code). Nothing was started.",
          "START_REFUSED",
        );
      held.signal.addEventListener("abort", program.lockLost);
      seen = await seated({ holdfast, name, queue, program, shell });
      return seen;
    };
    const locked = await holdfast
      .lock(lock, { lease: leaseMs, ...wait }, work)
      .catch((error: unknown) => {
        program.close();
        // A lost lock no longer matters after the program has ended.
        if (seen) return { acquired: true, value: seen as Seated } as const;
        throw error;
      });
    if (locked.acquired) return { kind: "ended", ...locked.value };
    if (isLocked) return { kind: "locked", holder: locked.holder, until: locked.until };
  }
  throw new DeclinedError(`${SEATS_MAX} programs already run as ${name}.`, "START_REFUSED");
}

type Seated = { readonly runId: RunId; readonly ended: ExecEnd };

type Program = {
  /** The run of the program, once it has begun. */
  readonly begun: Promise<RunId>;
  readonly ended: Promise<ExecEnd>;
  readonly input: unknown;
  readonly lockLost: () => void;
  /** After this call the program does not begin. */
  readonly close: () => void;
};

/** Declares the job of that name, whose only run here is this program. */
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
    const performed = await performProgram(params, {
      signal: AbortSignal.any([ctx.signal, lost.signal]),
      isLost: () => lost.signal.aborted || isLeaseLost(ctx.signal),
      onLine: (stream, line) => ctx.log.info({ stream }, line),
    });
    end(performed.ended);
    if (performed.failure) throw performed.failure;
    return performed.result;
  };
  try {
    holdfast.job(name, {
      run: run as never,
      lease: leaseMs,
      timeout: (timeoutMs ?? TIMEOUT_NONE_MS) + 2 * GRACE_MS,
      // The author of the crontab line decides when the program runs again.
      retry: { attempts: 1 },
      onLost: "fail",
      logs: { keep: "all", max: LINES_KEPT_MAX },
    });
  } catch (error) {
    if (textProp(error, "code") !== "JOB_DUPLICATE") throw error;
    throw new UsageError(
      `${name} is the name of a job in the configuration file; give the program another name.`,
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

/** Executes the program in its seat. A run that waits there belongs to a process that died before it began. */
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
  const giveUp = new AbortController();
  const hasBegun = await Promise.race([
    program.begun.then(() => true),
    delay(systemClock, BEGIN_WITHIN_MS, giveUp.signal).then(() => false),
  ]);
  giveUp.abort();
  if (!hasBegun) throw await notBegun(holdfast, id);
  const ended = await program.ended;
  await holdfast.runs.wait(id, { timeout: STORE_WITHIN_MS }).catch((error: unknown) => {
    const why = describeExit(error)?.message ?? "";
    shell.complain(`The end of run ${id} could not be stored; it will show as lost.\n${why}`);
  });
  return { runId: id, ended };
}

/** Stores the run. If the response is lost, the run exists if the program begins. */
async function enqueued(
  holdfast: Holdfast,
  { name, queue, program }: { name: string; queue: string; program: Program },
): Promise<RunId> {
  try {
    return (await holdfast.enqueue(name, program.input, { queue })).id;
  } catch (error) {
    const giveUp = new AbortController();
    const late = delay(systemClock, LOST_RESPONSE_MS, giveUp.signal).then(() => null);
    const id = await Promise.race([program.begun, late]);
    giveUp.abort();
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
    `Run ${id} did not begin within ${within}${why}. It is cancelled, and nothing was started.`,
    "NOT_BEGUN",
  );
}

function isLeaseLost(signal: AbortSignal): boolean {
  return signal.aborted && textProp(signal.reason, "code") === "LEASE_LOST";
}

/** Starts the program without a run, for --anyway while the database cannot be reached. */
export async function execAnyway(params: ExecParams): Promise<ExecEnd> {
  const { signal } = new AbortController();
  const nobody = { signal, isLost: () => false, onLine: () => undefined };
  return (await performProgram(params, nobody)).ended;
}
