// Splits the output of a program into lines of text, from chunks of bytes that end anywhere. Pure. A very long line is
// returned in pieces, so that no output can fill the memory.

const LINE_LENGTH_MAX = 4_000;

export class OutputLines {
  readonly #decoder = new TextDecoder();
  #rest = "";

  /** Returns the lines that this chunk completes. */
  feed(chunk: Uint8Array): string[] {
    return this.#take(this.#decoder.decode(chunk, { stream: true }));
  }

  /** Ends the output and returns the rest of it. */
  end(): string[] {
    const lines = this.#take(this.#decoder.decode());
    const last = this.#rest;
    this.#rest = "";
    return last === "" ? lines : [...lines, last];
  }

  #take(text: string): string[] {
    const parts = (this.#rest + text).split(/\r?\n/);
    this.#rest = parts.pop() ?? "";
    const lines = parts.flatMap(pieces);
    if (this.#rest.length <= LINE_LENGTH_MAX) return lines;
    const long = pieces(this.#rest);
    this.#rest = long.pop() ?? "";
    return [...lines, ...long];
  }
}

/** Keeps the last lines of an output, because they usually explain a failure. */
export class LastLines {
  readonly #max: number;
  readonly #lines: string[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  add(line: string): void {
    if (line.trim() === "") return;
    this.#lines.push(line);
    if (this.#lines.length > this.#max) this.#lines.shift();
  }

  get text(): string {
    return this.#lines.join("\n");
  }
}

function pieces(line: string): string[] {
  if (line.length <= LINE_LENGTH_MAX) return [line];
  const count = Math.ceil(line.length / LINE_LENGTH_MAX);
  return Array.from({ length: count }, (_, at) =>
    line.slice(at * LINE_LENGTH_MAX, (at + 1) * LINE_LENGTH_MAX),
  );
}
