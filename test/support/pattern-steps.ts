// Counts the steps of a backtracking engine for tests of regular expressions: steps are the same on every machine,
// time is not. It knows the syntax that the sources use; an unknown one is an error, never a guess.

type Node =
  | { readonly kind: "char"; readonly accepts: (char: string) => boolean; readonly source: string }
  | { readonly kind: "all"; readonly parts: readonly Node[] }
  | { readonly kind: "either"; readonly parts: readonly Node[] }
  | {
      readonly kind: "repeat";
      readonly part: Node;
      readonly min: number;
      readonly max: number;
      readonly isLazy: boolean;
    }
  | { readonly kind: "group"; readonly part: Node; readonly number: number }
  | {
      readonly kind: "look";
      readonly part: Node;
      readonly isBehind: boolean;
      readonly isNegative: boolean;
    }
  | { readonly kind: "again"; readonly number: number }
  | { readonly kind: "edge"; readonly holds: (text: string, at: number) => boolean };

type Step =
  | { readonly op: "char"; readonly accepts: (char: string) => boolean }
  | { readonly op: "split"; readonly first: number; readonly second: number }
  | { readonly op: "jump"; readonly to: number }
  | { readonly op: "save"; readonly slot: number }
  | { readonly op: "moved"; readonly slot: number }
  | {
      readonly op: "look";
      readonly steps: readonly Step[];
      readonly isBehind: boolean;
      readonly isNegative: boolean;
    }
  | { readonly op: "again"; readonly number: number }
  | { readonly op: "edge"; readonly holds: (text: string, at: number) => boolean }
  | { readonly op: "done" };

const isWord = (char: string | undefined) => char !== undefined && /\w/.test(char);
const isLineEnd = (char: string | undefined) =>
  char !== undefined && /[\n\r\u2028\u2029]/.test(char);

export type Pattern = {
  /** Sets of characters that the pattern tells apart, each by one that stands for it. */
  readonly alphabet: readonly string[];
  /** The shortest texts that the pattern accepts, one for each of its alternatives. */
  readonly samples: readonly string[];
  /** How many steps it takes to find all matches (or the first one, without the flag g). */
  readonly stepsFor: (text: string, max: number) => number;
};

export function readPattern(source: string, flags: string): Pattern {
  const reader = new Reader(source, flags);
  const root = reader.read();
  const steps: Step[] = [];
  const slots = { next: 1_000 };
  compile(root, steps, slots);
  steps.push({ op: "done" });
  return {
    alphabet: alphabetOf(reader.chars),
    samples: [...new Set(samplesOf(root))],
    stepsFor: (text, max) => search(steps, text, flags.includes("g"), max),
  };
}

class Reader {
  readonly chars: ((char: string) => boolean)[] = [];
  #at = 0;
  #groups = 0;

  constructor(
    readonly source: string,
    readonly flags: string,
  ) {}

  read(): Node {
    const node = this.#either();
    if (this.#at < this.source.length) throw new Error(`unread: ${this.source.slice(this.#at)}`);
    return node;
  }

  #either(): Node {
    const parts = [this.#all()];
    while (this.#takes("|")) parts.push(this.#all());
    return parts.length === 1 ? (parts[0] as Node) : { kind: "either", parts };
  }

  #all(): Node {
    const parts: Node[] = [];
    while (this.#at < this.source.length && !"|)".includes(this.source[this.#at] as string)) {
      parts.push(this.#repeated(this.#one()));
    }
    return { kind: "all", parts };
  }

  #repeated(part: Node): Node {
    const found = /^(?:([*+?])|\{(\d+)(,(\d*))?\})(\??)/.exec(this.source.slice(this.#at));
    if (!found) return part;
    this.#at += found[0].length;
    const [, sign, from, comma, to, lazy] = found;
    const min = sign ? (sign === "+" ? 1 : 0) : Number(from);
    const many = comma ? (to ? Number(to) : Number.POSITIVE_INFINITY) : min;
    const max = sign ? (sign === "?" ? 1 : Number.POSITIVE_INFINITY) : many;
    return { kind: "repeat", part, min, max, isLazy: lazy === "?" };
  }

  #one(): Node {
    const rest = this.source.slice(this.#at);
    const isMultiline = this.flags.includes("m");
    if (this.#takes("^"))
      return {
        kind: "edge",
        holds: (text, at) => at === 0 || (isMultiline && isLineEnd(text[at - 1])),
      };
    if (this.#takes("$"))
      return {
        kind: "edge",
        holds: (text, at) => at === text.length || (isMultiline && isLineEnd(text[at])),
      };
    if (this.#takes("\\b"))
      return { kind: "edge", holds: (text, at) => isWord(text[at - 1]) !== isWord(text[at]) };
    const look = /^\(\?(<?)([=!])/.exec(rest);
    if (look) {
      this.#at += look[0].length;
      const part = this.#closed();
      return { kind: "look", part, isBehind: look[1] === "<", isNegative: look[2] === "!" };
    }
    if (this.#takes("(?:")) return this.#closed();
    const named = /^\(\?<[A-Za-z]\w*>/.exec(rest);
    if (named || rest.startsWith("(")) {
      this.#at += named ? named[0].length : 1;
      this.#groups += 1;
      const number = this.#groups;
      return { kind: "group", number, part: this.#closed() };
    }
    const again = /^\\([1-9])/.exec(rest);
    if (again) {
      this.#at += 2;
      return { kind: "again", number: Number(again[1]) };
    }
    return this.#char(rest);
  }

  #char(rest: string): Node {
    const found =
      /^(?:\[(?:[^\]\\]|\\[\s\S])*\]|\\p\{[^}]+\}|\\P\{[^}]+\}|\\u\{[^}]+\}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\c[A-Z]|\\[^\d]|\\0|[^\\])/u.exec(
        rest,
      );
    if (!found) throw new Error(`unknown syntax: ${rest}`);
    this.#at += found[0].length;
    const whole = new RegExp(`^${found[0]}$`, this.flags.replace(/[gmy]/g, ""));
    const known = new Map<string, boolean>();
    const accepts = (char: string) => {
      const before = known.get(char);
      if (before !== undefined) return before;
      const answer = whole.test(char);
      known.set(char, answer);
      return answer;
    };
    this.chars.push(accepts);
    return { kind: "char", accepts, source: found[0] };
  }

  #closed(): Node {
    const part = this.#either();
    if (!this.#takes(")")) throw new Error(`not closed: ${this.source}`);
    return part;
  }

  #takes(text: string): boolean {
    if (!this.source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}

function compile(node: Node, steps: Step[], slots: { next: number }): void {
  switch (node.kind) {
    case "char":
      steps.push({ op: "char", accepts: node.accepts });
      return;
    case "all":
      for (const part of node.parts) compile(part, steps, slots);
      return;
    case "either": {
      const jumps: number[] = [];
      node.parts.forEach((part, index) => {
        const isLast = index === node.parts.length - 1;
        const split = steps.length;
        if (!isLast) steps.push({ op: "done" });
        compile(part, steps, slots);
        if (isLast) return;
        jumps.push(steps.length);
        steps.push({ op: "done" });
        steps[split] = { op: "split", first: split + 1, second: steps.length };
      });
      for (const jump of jumps) steps[jump] = { op: "jump", to: steps.length };
      return;
    }
    case "group":
      steps.push({ op: "save", slot: node.number * 2 });
      compile(node.part, steps, slots);
      steps.push({ op: "save", slot: node.number * 2 + 1 });
      return;
    case "repeat":
      repeat(node, steps, slots);
      return;
    case "look": {
      const inner: Step[] = [];
      compile(node.part, inner, slots);
      inner.push({ op: "done" });
      const { isBehind, isNegative } = node;
      steps.push({ op: "look", steps: inner, isBehind, isNegative });
      return;
    }
    case "again":
      steps.push({ op: "again", number: node.number });
      return;
    case "edge":
      steps.push({ op: "edge", holds: node.holds });
  }
}

function repeat(
  { part, min, max, isLazy }: Extract<Node, { kind: "repeat" }>,
  steps: Step[],
  slots: { next: number },
): void {
  for (let times = 0; times < min; times += 1) compile(part, steps, slots);
  const branch = (at: number, inside: number, after: number) => {
    steps[at] = isLazy
      ? { op: "split", first: after, second: inside }
      : { op: "split", first: inside, second: after };
  };
  if (max === Number.POSITIVE_INFINITY) {
    const at = steps.length;
    slots.next += 1;
    const slot = slots.next;
    steps.push({ op: "done" }, { op: "save", slot });
    compile(part, steps, slots);
    // A round that consumed nothing ends the loop, as it does in every engine.
    steps.push({ op: "moved", slot }, { op: "jump", to: at });
    branch(at, at + 1, steps.length);
    return;
  }
  const branches: number[] = [];
  for (let times = min; times < max; times += 1) {
    branches.push(steps.length);
    steps.push({ op: "done" });
    compile(part, steps, slots);
  }
  for (const at of branches) branch(at, at + 1, steps.length);
}

type Trail = {
  readonly pc: number;
  readonly at: number;
  readonly saved: ReadonlyMap<number, number>;
};

class Counter {
  steps = 0;
  constructor(readonly max: number) {}
}

/** Where the match that begins at `from` ends, or null. */
function matchAt(
  steps: readonly Step[],
  text: string,
  from: number,
  counter: Counter,
): number | null {
  const trails: Trail[] = [{ pc: 0, at: from, saved: new Map() }];
  for (let trail = trails.pop(); trail; trail = trails.pop()) {
    let { pc, at, saved } = trail;
    for (;;) {
      counter.steps += 1;
      if (counter.steps > counter.max) return null;
      const step = steps[pc] as Step;
      pc += 1;
      if (step.op === "done") return at;
      if (step.op === "char") {
        const char = text[at];
        if (char === undefined || !step.accepts(char)) break;
        at += 1;
      } else if (step.op === "split") {
        trails.push({ pc: step.second, at, saved });
        pc = step.first;
      } else if (step.op === "jump") pc = step.to;
      else if (step.op === "save") saved = new Map(saved).set(step.slot, at);
      else if (step.op === "moved") {
        if (saved.get(step.slot) === at) break;
      } else if (step.op === "edge") {
        if (!step.holds(text, at)) break;
      } else if (step.op === "again") {
        const part = text.slice(
          saved.get(step.number * 2) ?? 0,
          saved.get(step.number * 2 + 1) ?? 0,
        );
        counter.steps += part.length;
        if (!text.startsWith(part, at)) break;
        at += part.length;
      } else if (looks(step, text, at, counter) === step.isNegative) break;
    }
  }
  return null;
}

/** A look behind is of one character in the sources. */
function looks(
  step: Extract<Step, { op: "look" }>,
  text: string,
  at: number,
  counter: Counter,
): boolean {
  if (!step.isBehind) return matchAt(step.steps, text, at, counter) !== null;
  return at > 0 && matchAt(step.steps, text, at - 1, counter) === at;
}

function search(steps: readonly Step[], text: string, isAll: boolean, max: number): number {
  const counter = new Counter(max);
  for (let from = 0; from <= text.length; ) {
    const end = matchAt(steps, text, from, counter);
    if (counter.steps > max) return max;
    if (end !== null && !isAll) break;
    from = end !== null && end > from ? end : from + 1;
  }
  return counter.steps;
}

const CANDIDATES = [
  ..."aAbfgzZ_$059-+.:/@\\'\"`=&;,<>(){}[]|*#%!?~^ \t\n\r\0\u001b\u00e9\u2028",
  "TbearcwptsmnidlvoukyhGMTPWDHS",
].flatMap((text) => [...text]);

function alphabetOf(chars: readonly ((char: string) => boolean)[]): string[] {
  const bySignature = new Map<string, string>();
  for (const char of CANDIDATES) {
    const signature = chars.map((accepts) => (accepts(char) ? "1" : "0")).join("");
    if (!bySignature.has(signature)) bySignature.set(signature, char);
  }
  return [...bySignature.values()];
}

function samplesOf(node: Node): string[] {
  switch (node.kind) {
    case "char": {
      const char = CANDIDATES.find(node.accepts);
      return [char ?? ""];
    }
    case "all": {
      // Each alternative with those of its neighbour, and the first ones of the others: all together would be too many.
      const choices = node.parts.map(samplesOf);
      const firsts = choices.map(([first = ""]) => first);
      const varied = choices.flatMap((texts, place) =>
        texts.flatMap((text) =>
          (choices[place + 1] ?? [""]).map((next) =>
            firsts.toSpliced(place, 2, text, next).join(""),
          ),
        ),
      );
      return [...new Set([firsts.join(""), ...varied])].slice(0, 200);
    }
    case "either":
      return node.parts.flatMap(samplesOf);
    case "repeat":
      return samplesOf(node.part).map((text) => text.repeat(Math.min(Math.max(node.min, 1), 40)));
    case "group":
      return samplesOf(node.part);
    default:
      return [""];
  }
}
