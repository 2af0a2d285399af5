// Shows the progress of long work: a bar on a terminal, an occasional line without one, nothing with --json. The bar goes to
// standard error, so that the result can go to a file. The command words what is counted; this file adds the share and the time
// left.

import { systemClock } from "../../shared/adapters/clock.js";
import { formatDuration } from "../../shared/duration.js";
import { cut, plain, type Shell } from "../shell.js";

export type Progress = {
  readonly done: number;
  /** Null: the total is unknown. */
  readonly total: number | null;
  /** For example "12,000 of 80,000 runs". */
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
/** The shortest time between two redraws, however often the work reports. */
const DRAW_EVERY_MS = 100;
const LINE_EVERY_MS = 10_000;
/** Before this time an estimate of the rest would say nothing. */
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
    /** Without a terminal: the shortest time between two lines. @default 10 s */
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

  /** May be called at any rate. */
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

  /** Prints a warning; the bar is redrawn below it. */
  complain(text: string): void {
    this.end();
    if (this.#isBar) {
      this.#shown = "";
      this.#shownAtMs = null;
    }
    this.#shell.complain(text);
  }

  /** Removes the bar: the next output begins on its own line. */
  end(): void {
    if (this.#isDrawn) this.#terminal.write(CLEAR_LINE);
    this.#isDrawn = false;
  }

  #isTimeToDraw({ done, total }: Progress, nowMs: number): boolean {
    return done === total || this.#shownAtMs === null || nowMs - this.#shownAtMs >= DRAW_EVERY_MS;
  }

  /** Work that ends before its first line is due prints none. */
  #isTimeForLine({ done, total }: Progress, nowMs: number): boolean {
    if (done === total && this.#shown !== "") return true;
    return nowMs - (this.#shownAtMs ?? this.#begun?.atMs ?? nowMs) >= this.#lineEveryMs;
  }

  #draw(line: string): void {
    this.#isDrawn = true;
    // A line that wraps could not be cleared.
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

/** Rounds an estimate to seconds, and a long one to minutes. */
function roughly(ms: number): string {
  const unitMs = ms >= HOUR_MS ? 60_000 : 1_000;
  return formatDuration(Math.max(unitMs, Math.round(ms / unitMs) * unitMs));
}
