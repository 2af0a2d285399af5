// The outer shape of an .ics file (RFC 5545): folded lines joined, properties with their parameters,
// and the events among the components. Knows nothing of what the properties mean.
// Linear in the length of the text, which ics.ts limits.

export type IcsProperty = {
  readonly name: string;
  readonly params: ReadonlyMap<string, string>;
  readonly value: string;
};

/** The properties of one VEVENT, without those of components inside it, such as alarms. */
export type IcsComponent = {
  /** Where it begins, counted from 1 as an editor does. */
  readonly line: number;
  readonly properties: readonly IcsProperty[];
};

/** The events, or what is wrong with the text in words that follow "the .ics text …". */
export function readComponents(text: string): IcsComponent[] | string {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  const events: IcsComponent[] = [];
  const open: string[] = [];
  let properties: IcsProperty[] = [];
  let line = 0;
  for (let index = 0; index < lines.length; ) {
    const number = index + 1;
    let whole = lines[index++] ?? "";
    // A line that begins with a space or a tab continues the one before it.
    while (/^[ \t]/.test(lines[index] ?? "")) whole += (lines[index++] ?? "").slice(1);
    if (whole.trim() === "") continue;
    const property = readProperty(whole);
    if (property === null) return `has no property in line ${number}`;
    const { name, value } = property;
    const component = value.trim().toUpperCase();
    if (open.length === 0 && (name !== "BEGIN" || component !== "VCALENDAR")) {
      return `must be inside BEGIN:VCALENDAR and END:VCALENDAR, but line ${number} is not`;
    }
    if (name === "BEGIN") {
      open.push(component);
      if (isEvent(open)) [properties, line] = [[], number];
    } else if (name === "END") {
      if (isEvent(open)) events.push({ line, properties });
      if (open.pop() !== component) return `ends a component in line ${number} that is not open`;
    } else if (isEvent(open)) properties.push(property);
  }
  if (open.length > 0) return `ends before END:${open.at(-1)?.slice(0, 40)}`;
  if (lines.every((each) => each.trim() === "")) return "is empty";
  return events;
}

function isEvent(open: readonly string[]): boolean {
  return open.length === 2 && open[1] === "VEVENT";
}

function readProperty(line: string): IcsProperty | null {
  const [name = ""] = /^[A-Za-z0-9-]+/.exec(line) ?? [];
  if (name === "") return null;
  const params = new Map<string, string>();
  let at = name.length;
  while (line[at] === ";") {
    const equals = line.indexOf("=", at);
    if (equals === -1) return null;
    const end = endOfParam(line, equals + 1);
    if (end === -1) return null;
    const value = line.slice(equals + 1, end).replace(/^"(.*)"$/, "$1");
    params.set(line.slice(at + 1, equals).toUpperCase(), value);
    at = end;
  }
  if (line[at] !== ":") return null;
  return { name: name.toUpperCase(), params, value: line.slice(at + 1) };
}

/** Where the value of a parameter ends: at a semicolon or colon outside of quotes. */
function endOfParam(line: string, from: number): number {
  let isQuoted = false;
  for (let at = from; at < line.length; at++) {
    const char = line[at];
    if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (char === ";" || char === ":")) return at;
  }
  return -1;
}

/** Text with its escapes undone: `\,` `\;` `\n` `\\`. */
export function unescapeText(value: string): string {
  return value.replace(/\\([\\;,nN])/g, (_, char: string) => (/n/i.test(char) ? " " : char));
}
