// `holdfast top`: shows activity, live on a terminal, once for pipes and programs.

import type { Command } from "commander";
import { systemClock } from "../../shared/adapters/clock.js";
import { formatDuration } from "../../shared/duration.js";
import { delay } from "../../shared/ports.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { describeExit, UsageError } from "../failure.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { canDraw, Screen, type ScreenTerminal } from "../output/screen.js";
import { endedEachMinute, observeAll, type TopObservation, topPage } from "../output/top.js";
import { refuseWatchedJson, repeat, type WatchFlags, withWatchOption } from "../read-command.js";
import { EXIT, plain } from "../shell.js";
import { firstSignal } from "../signals.js";

type Flags = CommonFlags & WatchFlags;

const EVERY_MS = 2_000;
const EVERY_MIN_MS = 200;

export function topCommand(call: Call): Command {
  const command = newCommand({
    name: "top",
    summary: "Show activity live: instances, queues, runs, next ticks, failures. q quits.",
    examples: ["top", "top --watch 5s", "top --json"],
  });
  const watched = withWatchOption(command, "how often to redraw (default: 2s)");
  return act<Flags>(withConfigOption(watched), call, async (flags) => {
    const { shell } = call;
    const { watch } = flags;
    refuseWatchedJson(shell.isJson, watch);
    if (watch !== undefined && watch < EVERY_MIN_MS)
      throw new UsageError("--watch: must be at least 200ms.");
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      let before: TopObservation | null = null;
      const { colours } = shell;
      const observe = async () => {
        const now = await observeAll(holdfast, systemClock.wallMs());
        const eachMinute = endedEachMinute(before, now);
        before = now;
        return { now, eachMinute };
      };
      if (!shell.isJson && canDraw(process.stdout)) {
        const everyMs = watch ?? EVERY_MS;
        const stopped = new AbortController();
        void firstSignal().then(() => stopped.abort());
        await live({
          terminal: process.stdout,
          keyboard: process.stdin,
          everyMs,
          signal: stopped.signal,
          observe,
          page: ({ now, eachMinute }, trouble) => {
            const note = trouble ?? `every ${formatDuration(everyMs)}, q quits`;
            const rows = process.stdout.rows || null;
            return topPage(now, { colours, rows, note, eachMinute });
          },
        });
        return EXIT.done;
      }
      const show = async () => {
        const { now, eachMinute } = await observe();
        return { text: topPage(now, { colours, rows: null, note: "", eachMinute }), now };
      };
      if (watch !== undefined) return repeat({ shell, everyMs: watch, show });
      const { text, now } = await show();
      await shell.say(text.replace(/(?<! ) +$/gm, ""));
      await shell.printJson(now);
      return EXIT.done;
    });
  });
}

/** The part of a keyboard that `top` needs. */
export type Keyboard = {
  readonly isTTY?: boolean;
  setRawMode?(isRaw: boolean): unknown;
  on(event: "data", listener: (chunk: Uint8Array) => void): unknown;
  off(event: "data", listener: (chunk: Uint8Array) => void): unknown;
  resume(): unknown;
  pause(): unknown;
};

export type TopTerminal = ScreenTerminal & {
  on(event: "resize", listener: () => void): unknown;
  off(event: "resize", listener: () => void): unknown;
};

/** q, Q, Ctrl-C, Ctrl-D. */
const LEAVING = new Set([0x71, 0x51, 0x03, 0x04]);

export async function live<Observation>(params: {
  readonly terminal: TopTerminal;
  readonly keyboard: Keyboard;
  readonly everyMs: number;
  /** Aborts when a signal asks the process to end. */
  readonly signal: AbortSignal;
  readonly observe: () => Promise<Observation>;
  /** `trouble`: why the page is not up to date. */
  readonly page: (observe: Observation, trouble: string | null) => string;
}): Promise<void> {
  const { terminal, keyboard, everyMs, observe, page } = params;
  const screen = new Screen(terminal, { isFullScreen: true });
  const left = new AbortController();
  const leave = () => left.abort();
  const onKey = (chunk: Uint8Array) => {
    if (chunk.some((byte) => LEAVING.has(byte))) leave();
  };
  let draw: () => void = () => undefined;
  const onResize = () => {
    screen.resized();
    draw();
  };
  // Not even an error may leave a terminal that shows no cursor.
  const giveBack = () => {
    screen.leave();
    if (keyboard.isTTY) keyboard.setRawMode?.(false);
  };
  if (params.signal.aborted) return;
  params.signal.addEventListener("abort", leave, { once: true });
  // The first read must succeed before the screen is taken.
  let last = await observe();
  process.once("exit", giveBack);
  if (keyboard.isTTY) keyboard.setRawMode?.(true);
  keyboard.on("data", onKey);
  keyboard.resume();
  terminal.on("resize", onResize);
  try {
    let trouble: string | null = null;
    while (!left.signal.aborted) {
      const shownTrouble = trouble;
      draw = () => screen.draw(page(last, shownTrouble));
      draw();
      await delay(systemClock, everyMs, left.signal);
      if (left.signal.aborted) break;
      try {
        last = await observe();
        trouble = null;
      } catch (error) {
        // The database may come back; the last page stays.
        trouble = plain(describeExit(error)?.message ?? "unknown error");
      }
    }
  } finally {
    terminal.off("resize", onResize);
    keyboard.off("data", onKey);
    keyboard.pause();
    process.off("exit", giveBack);
    params.signal.removeEventListener("abort", leave);
    giveBack();
  }
}
