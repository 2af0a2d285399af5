// Output of a program as lines of text, from chunks of bytes that end anywhere. Pure; what has no end of
// line is handed out in pieces, so that no output can take the memory.

const LINE_LENGTH_MAX = 4_000;

export class OutputLines {
  readonly #decoder = new TextDecoder();
  #rest = "";

  /** The lines that this chunk completes. */
  feed(chunk: Uint8Array): string[] {
    return this.#take(this.#decoder.decode(chunk, { stream: true }));
  }

  /** The output is over: what is left of it. */
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

/** The last lines of an output: what a failure is best told by. */
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
