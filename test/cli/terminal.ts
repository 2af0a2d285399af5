// Runs the built program as a user does: in a folder, with arguments, by signals; and waits for the
// lines that it prints, never for time to pass. Commands that end by themselves share one process
// (warm-program.mjs); `begin` gives a command a process of its own.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

const ROOT = path.resolve(import.meta.dirname, "../..");
export const PROGRAM = path.join(ROOT, "dist/cli/main.js");
/** Inside the repository, so that `holdfast` resolves to the package itself, as built. */
const SCRATCH = path.join(ROOT, ".holdfast");

export type Ended = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};
export type Terminal = {
  readonly folder: string;
  /** Writes files of the user's project, by their path inside the folder. */
  write(files: Readonly<Record<string, string>>): void;
  /** Runs a command to its end, in the process that commands share; one with input has a process of its own. */
  holdfast(args: readonly string[], options?: CommandOptions): Promise<Ended>;
  /** Starts a command in a process of its own. */
  begin(args: readonly string[], options?: CommandOptions): Session;
  /** Ends what is still running and removes the folder. */
  close(): Promise<void>;
};
export type CommandOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
};
export type Session = {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves with the first line, on either stream, that fits and was not handed out before. */
  line(pattern: RegExp): Promise<string>;
};

export function openTerminal(): Terminal {
  mkdirSync(SCRATCH, { recursive: true });
  const folder = mkdtempSync(path.join(SCRATCH, "cli-"));
  const sessions: Session[] = [];
  const warm = new WarmProgram(folder);
  const begin = (args: readonly string[], options: CommandOptions = {}) => {
    const session = startSession([PROGRAM, ...args], folder, options);
    sessions.push(session);
    return session;
  };
  return {
    folder,
    write(files) {
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
        writeFileSync(path.join(folder, name), text);
      }
    },
    holdfast: (args, options = {}) =>
      options.input === undefined ? warm.run(args, options) : begin(args, options).ended,
    begin,
    async close() {
      await warm.close();
      for (const { child } of sessions) child.kill("SIGKILL");
      await Promise.all(sessions.map(({ ended }) => ended));
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** One process that runs commands one after the other. */
class WarmProgram {
  readonly #folder: string;
  #child: ChildProcess | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string) {
    this.#folder = folder;
  }

  run(args: readonly string[], { env = {} }: CommandOptions): Promise<Ended> {
    const ended = this.#last.then(async () => {
      this.#child ??= fork(path.join(import.meta.dirname, "warm-program.mjs"), [PROGRAM], {
        cwd: this.#folder,
        env: cleanEnvironment(),
        execArgv: [],
      });
      this.#child.send({ args, env: { ...cleanEnvironment(), HOLDFAST_PORT: "0", ...env } });
      const exited = once(this.#child, "exit").then(([code]) => {
        throw new Error(`The process of commands ended with ${code} in: ${args.join(" ")}`);
      });
      const [message] = await Promise.race([once(this.#child, "message"), exited]);
      return message as Ended;
    });
    this.#last = ended.catch(() => undefined);
    return ended;
  }

  async close(): Promise<void> {
    if (this.#child === null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}

export function startSession(
  command: readonly string[],
  cwd: string,
  { env = {}, input }: CommandOptions = {},
): Session {
  const child = spawn(process.execPath, command, {
    cwd,
    env: { ...cleanEnvironment(), HOLDFAST_PORT: "0", ...env },
  });
  if (input !== undefined) child.stdin.write(input);
  child.stdin.end();
  const text = { stdout: "", stderr: "" };
  const lines: string[] = [];
  let waiting: (() => void)[] = [];
  let hasEnded = false;
  const wake = () => {
    const woken = waiting;
    waiting = [];
    for (const resolve of woken) resolve();
  };
  for (const name of ["stdout", "stderr"] as const) {
    let rest = "";
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      text[name] += chunk;
      const parts = (rest + chunk).split("\n");
      rest = parts.pop() ?? "";
      lines.push(...parts);
      wake();
    });
  }
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code) => {
      hasEnded = true;
      wake();
      resolve({ code, ...text });
    });
  });
  return {
    child,
    ended,
    async line(pattern) {
      for (;;) {
        const at = lines.findIndex((each) => pattern.test(each));
        const [found] = at < 0 ? [] : lines.splice(0, at + 1).slice(-1);
        if (found !== undefined) return found;
        if (hasEnded) throw new Error(`No line fits ${pattern}:\n${text.stdout}\n${text.stderr}`);
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
  };
}

/** Without what the developer's shell or an outer npm may have set. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(HOLDFAST_|PG|npm_|NO_COLOR$|FORCE_COLOR$|NODE_OPTIONS$|VITEST)/.test(name),
  );
  return Object.fromEntries(kept);
}

/** A configuration file with these jobs, given as source text. */
export function configText(jobs: string, options = '{ database: "sqlite:app.db" }'): string {
  return `import { Holdfast, PermanentError, RetryLater } from "holdfast";
import { setTimeout as pause } from "node:timers/promises";
const holdfast = new Holdfast(${options});
${jobs}
export default holdfast;
`;
}

export const ECHO_JOB = `holdfast.job("echo", { run: (input) => ({ echoed: input }) });`;

/** Text with everything taken out that differs from run to run. */
export function steady(text: string): string {
  return text
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>")
    .replace(/\b\d+(\.\d+)? (ms|s)\b/g, "<duration>")
    .replace(/^(holder +).*$/gm, "$1<holder>")
    .replace(/^(fence +)\d+$/gm, "$1<fence>")
    .replace(/^(\d+ +)\d+( +(?:completed|failed) )/gm, "$1<fence>$2")
    .replace(/ {2,}/g, "  ")
    .replace(/ +$/gm, "");
}
