// Redraws a page in place without flicker, for `--watch` and `top`: writes every line in its place and clears the rest of the line,
// without clearing the screen first.

import { stripVTControlCharacters } from "node:util";

/** The part of a terminal that a screen needs. */
export type ScreenTerminal = {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
};

const HOME = "\u001b[H";
const CLEAR = "\u001b[2J";
const WIPE_LINE = "\u001b[K";
const WIPE_BELOW = "\u001b[J";
const RESET = "\u001b[0m";
const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";

export function canDraw(terminal: ScreenTerminal): boolean {
  return terminal.isTTY === true && process.env.TERM !== "dumb";
}

export class Screen {
  readonly #terminal: ScreenTerminal;
  readonly #isFullScreen: boolean;
  #isFirst = true;

  /** `isFullScreen`: uses the alternate screen, and restores the terminal afterwards. */
  constructor(terminal: ScreenTerminal, { isFullScreen }: { readonly isFullScreen: boolean }) {
    this.#terminal = terminal;
    this.#isFullScreen = isFullScreen;
  }

  draw(page: string): void {
    const { columns } = this.#terminal;
    // A terminal of unknown size reports 0.
    const rows = this.#terminal.rows || undefined;
    const lines = page.split("\n");
    // One line is left free: a newline in the last one would scroll.
    const isCut = rows !== undefined && lines.length > rows - 1;
    const shown = isCut ? lines.slice(0, Math.max(1, rows - 1)) : lines;
    const body = shown.map((line) => `${cutToWidth(line, columns)}${WIPE_LINE}\n`).join("");
    const enter = this.#isFirst ? (this.#isFullScreen ? `${ENTER}${CLEAR}` : CLEAR) : "";
    this.#isFirst = false;
    // In one write: between two, the terminal could show half a page.
    this.#terminal.write(`${enter}${HOME}${body}${WIPE_BELOW}`);
  }

  /** Clears the terminal; the next output stays, however long it is. */
  clear(): void {
    this.#terminal.write(`${CLEAR}${HOME}`);
  }

  /** Clears the terminal after a resize, which may have moved its content. */
  resized(): void {
    if (!this.#isFirst) this.#terminal.write(CLEAR);
  }

  /** Restores the terminal. A second call does nothing. */
  leave(): void {
    if (this.#isFullScreen && !this.#isFirst) this.#terminal.write(LEAVE);
    this.#isFirst = true;
  }
}

/** Cuts the line to the width: a line that wraps would push the others down. */
export function cutToWidth(line: string, columns: number | undefined): string {
  if (columns === undefined || columns < 1) return line;
  if (stripVTControlCharacters(line).length <= columns) return line;
  let text = "";
  let width = 0;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours take no room.
  for (const part of line.split(/(\u001b\[[0-9;]*m)/)) {
    if (part.startsWith("\u001b[")) text += part;
    else {
      const room = Math.max(0, columns - 1 - width);
      text += part.slice(0, room);
      width += Math.min(part.length, room);
    }
  }
  return `${text}${RESET}…`;
}
