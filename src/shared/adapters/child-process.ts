// Programs of the operating system. Each is started in a process group of its own, so that whatever it
// starts is ended with it: SIGTERM first, SIGKILL where that was not enough. Never a shell: a program and
// its arguments are given one by one.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import type { Readable } from "node:stream";
import { type Clock, delay } from "../ports.js";
import { systemClock } from "./clock.js";

export type Stream = "stdout" | "stderr";

export type ProgramParams = {
  readonly file: string;
  readonly args: readonly string[];
  readonly folder?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Whether it reads what this process reads. @default false */
  readonly isReading?: boolean;
  /** Output as it comes; the program waits while the promise does. */
  readonly onOutput: (stream: Stream, chunk: Uint8Array) => Promise<void> | void;
  /** Ends the program. */
  readonly signal: AbortSignal;
  /** How long it has after SIGTERM. */
  readonly graceMs: number;
  /** Null: as long as it takes. */
  readonly timeoutMs: number | null;
  /** Passes signals on to the program and all that it started. */
  readonly onStarted?: (pass: (signal: NodeJS.Signals) => void) => void;
};

export type ProgramEnd = {
  /** Null: a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Whether it was ended, and why. */
  readonly endedBy: "itself" | "timeout" | "abort";
  readonly durationMs: number;
};

/** What it left behind may keep the pipes open; after its own end they are waited for this long. */
const DRAIN_MS = 2_000;
const LOOK_MS = 20;

/** Rejects where it could not be started, with the code of the operating system (ENOENT, EACCES). */
export async function runProgram(params: ProgramParams): Promise<ProgramEnd> {
  const { file, args, folder, env, isReading = false, timeoutMs, graceMs } = params;
  const clock: Clock = systemClock;
  const beganMs = clock.monotonicMs();
  params.signal.throwIfAborted();
  const child = spawn(file, args, {
    ...(folder === undefined ? {} : { cwd: folder }),
    ...(env === undefined ? {} : { env }),
    stdio: [isReading ? "inherit" : "ignore", "pipe", "pipe"],
    detached: true,
    shell: false,
  }) as ChildProcessByStdio<null, Readable, Readable>;
  await started(child).catch((error: unknown) => {
    throw isNowhere(file, env ?? process.env)
      ? Object.assign(new Error(file), { code: "ENOENT" })
      : error;
  });
  const group = new ProcessGroup(child.pid ?? 0);
  params.onStarted?.((signal) => group.send(signal));
  const drained = Promise.all([
    pump(child.stdout, (chunk) => params.onOutput("stdout", chunk)),
    pump(child.stderr, (chunk) => params.onOutput("stderr", chunk)),
  ]);
  const exited = new Promise<Pick<ProgramEnd, "exitCode" | "signal">>((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  let endedBy: ProgramEnd["endedBy"] = "itself";
  let ending: Promise<void> | null = null;
  const end = (why: "timeout" | "abort") => {
    if (ending) return;
    endedBy = why;
    ending = group.end(clock, graceMs);
  };
  const onAbort = () => end("abort");
  params.signal.addEventListener("abort", onAbort, { once: true });
  const timer = timeoutMs === null ? null : longTimer(clock, timeoutMs, () => end("timeout"));
  const { exitCode, signal } = await exited;
  timer?.();
  params.signal.removeEventListener("abort", onAbort);
  const durationMs = Math.round(clock.monotonicMs() - beganMs);
  // Read again: it is set by what happens meanwhile.
  await (ending as Promise<void> | null);
  await Promise.race([drained, delay(clock, DRAIN_MS)]);
  child.stdout.destroy();
  child.stderr.destroy();
  return { exitCode, signal, endedBy, durationMs };
}

/**
 * A folder of PATH that this user may not look into makes the system say EACCES of a program that is in none
 * of them. A shell says that there is no such program, and so do we.
 */
function isNowhere(file: string, env: NodeJS.ProcessEnv): boolean {
  if (file.includes("/")) return false;
  const folders = (env.PATH ?? "").split(path.delimiter);
  return !folders.some((folder) => existsSync(path.join(folder, file)));
}

function started(child: ChildProcessByStdio<null, Readable, Readable>): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
}

async function pump(
  stream: Readable,
  take: (chunk: Uint8Array) => Promise<void> | void,
): Promise<void> {
  try {
    for await (const chunk of stream) await take(chunk as Uint8Array);
  } catch {
    // Destroyed while something that the program left behind still had it open.
  }
}

class ProcessGroup {
  readonly #id: number;

  constructor(id: number) {
    this.#id = id;
  }

  /** False: nobody is left in it. */
  send(signal: NodeJS.Signals | 0): boolean {
    try {
      process.kill(-this.#id, signal);
      return true;
    } catch (error) {
      // Somebody is there who may not be told.
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
  }

  /** Also those who outlive the program itself get their time, and are killed when it is over. */
  async end(clock: Clock, graceMs: number): Promise<void> {
    this.send("SIGTERM");
    const untilMs = clock.monotonicMs() + graceMs;
    while (this.send(0)) {
      if (clock.monotonicMs() >= untilMs) {
        this.send("SIGKILL");
        return;
      }
      await delay(clock, LOOK_MS);
    }
  }
}

/** Timers are clamped: a long one is set again. */
function longTimer(clock: Clock, delayMs: number, callback: () => void): () => void {
  const untilMs = clock.monotonicMs() + delayMs;
  let timer = clock.timer(delayMs, look);
  function look(): void {
    const leftMs = untilMs - clock.monotonicMs();
    if (leftMs <= 0) callback();
    else timer = clock.timer(leftMs, look);
  }
  return () => timer.cancel();
}
