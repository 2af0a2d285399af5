// Draws a page over the one before without flicker: every line is written in its place and the rest of
// it wiped, nothing is cleared first. Where there is no terminal to draw on, pages follow each other.

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

  /** `isFullScreen`: takes the whole terminal, and gives it back as it was. */
  constructor(terminal: ScreenTerminal, { isFullScreen }: { readonly isFullScreen: boolean }) {
    this.#terminal = terminal;
    this.#isFullScreen = isFullScreen;
  }

  draw(page: string): void {
    const { columns } = this.#terminal;
    // A terminal that does not know its size says 0.
    const rows = this.#terminal.rows || undefined;
    const lines = page.split("\n");
    // One line less than there are: a newline in the last one would scroll.
    const isCut = rows !== undefined && lines.length > rows - 1;
    const shown = isCut ? lines.slice(0, Math.max(1, rows - 1)) : lines;
    const body = shown.map((line) => `${cutToWidth(line, columns)}${WIPE_LINE}\n`).join("");
    const enter = this.#isFirst ? (this.#isFullScreen ? `${ENTER}${CLEAR}` : CLEAR) : "";
    this.#isFirst = false;
    // One write: a terminal that draws between two would show half a page.
    this.#terminal.write(`${enter}${HOME}${body}${WIPE_BELOW}`);
  }

  /** An empty terminal: what is written next stays there, however long it is. */
  clear(): void {
    this.#terminal.write(`${CLEAR}${HOME}`);
  }

  /** The terminal has another size now: nothing of what stands there can be relied on. */
  resized(): void {
    if (!this.#isFirst) this.#terminal.write(CLEAR);
  }

  /** Gives the terminal back. Twice is once. */
  leave(): void {
    if (this.#isFullScreen && !this.#isFirst) this.#terminal.write(LEAVE);
    this.#isFirst = true;
  }
}

/** The line as far as it fits: one that wraps would push the others down. */
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
