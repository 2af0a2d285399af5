// Runs programs of the operating system. Each gets a process group of its own, so that everything it starts ends with
// it: SIGTERM first, then SIGKILL. It never uses a shell: the program and its arguments are given one by one.

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
  /** Whether it inherits the standard input of this process. @default false */
  readonly isReading?: boolean;
  /** Receives output as it arrives. The program waits while the returned promise is pending. */
  readonly onOutput: (stream: Stream, chunk: Uint8Array) => Promise<void> | void;
  /** Ends the program. */
  readonly signal: AbortSignal;
  /** The time between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  /** Null: no limit. */
  readonly timeoutMs: number | null;
  /** Receives a function that sends a signal to the program and to everything that it started. */
  readonly onStarted?: (pass: (signal: NodeJS.Signals) => void) => void;
};

export type ProgramEnd = {
  /** Null if a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The reason why it ended. */
  readonly endedBy: "itself" | "timeout" | "abort";
  readonly durationMs: number;
};

/** Processes that the program left behind may keep the pipes open; reading goes on this long after its own end. */
const DRAIN_MS = 2_000;
const LOOK_MS = 20;

/** Rejects with the code of the operating system (ENOENT, EACCES) if the program could not be started. */
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
  // The cast is needed because `end` sets the variable while this function waits.
  await (ending as Promise<void> | null);
  await Promise.race([drained, delay(clock, DRAIN_MS)]);
  child.stdout.destroy();
  child.stderr.destroy();
  return { exitCode, signal, endedBy, durationMs };
}

/**
 * If this user may not read a folder of PATH, the system reports EACCES for a program that is in no folder. A shell
 * reports that there is no such program, and so does this function.
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
    // The stream was destroyed while a process that the program left behind still had it open.
  }
}

class ProcessGroup {
  readonly #id: number;

  constructor(id: number) {
    this.#id = id;
  }

  /** Returns false if the group is empty. */
  send(signal: NodeJS.Signals | 0): boolean {
    try {
      process.kill(-this.#id, signal);
      return true;
    } catch (error) {
      // EPERM: a process is left that this user may not signal.
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
  }

  /** Processes that outlive the program get the same grace time before they are killed. */
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

/** Sets a long timer in parts, because timers are clamped. */
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
