// How far long work is: a bar on a terminal, a line now and then elsewhere, nothing for programs.
// The bar is drawn on standard error, so that an answer may go to a file meanwhile. What is counted is
// worded by the command; this file adds the share and the time that is left.

import { systemClock } from "../../shared/adapters/clock.js";
import { formatDuration } from "../../shared/duration-text.js";
import { cut, plain, type Shell } from "../shell.js";

export type Progress = {
  readonly done: number;
  /** Null: nobody knows yet how much there is. */
  readonly total: number | null;
  /** What is done, such as "12,000 of 80,000 runs". */
  readonly text: string;
};

/** The part of a terminal that a bar needs. */
export type BarTerminal = {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
};

const CLEAR_LINE = "\r\u001b[K";
const BAR_WIDTH = 30;
const COLUMNS_DEFAULT = 80;
/** A terminal is not drawn on more often than this; work may report as often as it likes. */
const DRAW_EVERY_MS = 100;
const LINE_EVERY_MS = 10_000;
/** What is left is guessed only after this much: before, it says nothing. */
const GUESS_AFTER_MS = 2_000;
const HOUR_MS = 3_600_000;

export class ProgressBar {
  readonly #shell: Shell;
  readonly #terminal: BarTerminal;
  readonly #nowMs: () => number;
  readonly #lineEveryMs: number;
  readonly #isBar: boolean;
  #begun: { readonly atMs: number; readonly done: number } | null = null;
  #shownAtMs: number | null = null;
  #shown = "";
  #isDrawn = false;

  constructor(params: {
    readonly shell: Shell;
    /** Where there is no terminal: how long after a line the next one comes at the soonest. @default 10 s */
    readonly lineEveryMs?: number;
    readonly terminal?: BarTerminal;
    readonly nowMs?: () => number;
  }) {
    const { shell, lineEveryMs = LINE_EVERY_MS, terminal = process.stderr } = params;
    this.#shell = shell;
    this.#terminal = terminal;
    this.#lineEveryMs = lineEveryMs;
    this.#nowMs = params.nowMs ?? (() => systemClock.monotonicMs());
    this.#isBar = terminal.isTTY === true && process.env.TERM !== "dumb";
  }

  /** May be called as often as there is news. */
  show(progress: Progress): void {
    const nowMs = this.#nowMs();
    this.#begun ??= { atMs: nowMs, done: progress.done };
    if (this.#shell.isJson || progress.text === this.#shown) return;
    if (this.#isBar ? !this.#isTimeToDraw(progress, nowMs) : !this.#isTimeForLine(progress, nowMs))
      return;
    this.#shownAtMs = nowMs;
    this.#shown = progress.text;
    const text = plain(progress.text) + this.#left(progress, nowMs);
    if (this.#isBar) this.#draw(`${bar(progress)} ${text}`);
    else this.#terminal.write(`${text}\n`);
  }

  /** A warning in between: the bar is drawn again below it. */
  complain(text: string): void {
    this.end();
    if (this.#isBar) {
      this.#shown = "";
      this.#shownAtMs = null;
    }
    this.#shell.complain(text);
  }

  /** Takes the bar away: what comes next begins on a line of its own. */
  end(): void {
    if (this.#isDrawn) this.#terminal.write(CLEAR_LINE);
    this.#isDrawn = false;
  }

  #isTimeToDraw({ done, total }: Progress, nowMs: number): boolean {
    return done === total || this.#shownAtMs === null || nowMs - this.#shownAtMs >= DRAW_EVERY_MS;
  }

  /** Work that is done before its first line is due leaves no lines at all. */
  #isTimeForLine({ done, total }: Progress, nowMs: number): boolean {
    if (done === total && this.#shown !== "") return true;
    return nowMs - (this.#shownAtMs ?? this.#begun?.atMs ?? nowMs) >= this.#lineEveryMs;
  }

  #draw(line: string): void {
    this.#isDrawn = true;
    // A line that wraps could not be taken back.
    const width = (this.#terminal.columns || COLUMNS_DEFAULT) - 1;
    this.#terminal.write(`${CLEAR_LINE}${cut(line, Math.max(1, width))}`);
  }

  #left({ done, total }: Progress, nowMs: number): string {
    const begun = this.#begun;
    if (begun === null || total === null || done >= total || done <= begun.done) return "";
    const tookMs = nowMs - begun.atMs;
    if (tookMs < GUESS_AFTER_MS) return "";
    const leftMs = (tookMs / (done - begun.done)) * (total - done);
    return `, about ${roughly(leftMs)} left`;
  }
}

function bar({ done, total }: Progress): string {
  if (total === null) return `[${"-".repeat(BAR_WIDTH)}]     `;
  const share = total === 0 ? 1 : Math.min(1, Math.max(0, done / total));
  const full = Math.floor(share * BAR_WIDTH);
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  return `[${"#".repeat(full)}${"-".repeat(BAR_WIDTH - full)}] ${percent}`;
}

/** A guess has no milliseconds, and a long one no seconds. */
function roughly(ms: number): string {
  const unitMs = ms >= HOUR_MS ? 60_000 : 1_000;
  return formatDuration(Math.max(unitMs, Math.round(ms / unitMs) * unitMs));
}
