// Runs `top` on a terminal: takes the full screen, redraws at an interval and on resize, and always restores the screen.

import { systemClock } from "../../shared/adapters/clock.js";
import { delay } from "../../shared/ports.js";
import { describeExit } from "../failure.js";
import { Screen, type ScreenTerminal } from "../output/screen.js";
import { plain } from "../shell.js";

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

export async function live<Look>(params: {
  readonly terminal: TopTerminal;
  readonly keyboard: Keyboard;
  readonly everyMs: number;
  /** Aborts when the process is told to end. */
  readonly signal: AbortSignal;
  readonly look: () => Promise<Look>;
  /** `trouble`: why there is no news. */
  readonly page: (look: Look, trouble: string | null) => string;
}): Promise<void> {
  const { terminal, keyboard, everyMs, look, page } = params;
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
  // The first answer must come before anything is taken.
  let last = await look();
  process.once("exit", giveBack);
  if (keyboard.isTTY) keyboard.setRawMode?.(true);
  keyboard.on("data", onKey);
  keyboard.resume();
  terminal.on("resize", onResize);
  try {
    let trouble: string | null = null;
    while (!left.signal.aborted) {
      const said = trouble;
      draw = () => screen.draw(page(last, said));
      draw();
      await delay(systemClock, everyMs, left.signal);
      if (left.signal.aborted) break;
      try {
        last = await look();
        trouble = null;
      } catch (error) {
        // It may come back; what was seen last stays.
        trouble = plain(describeExit(error)?.message ?? "no answer");
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
