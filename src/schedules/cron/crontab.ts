// Reads a crontab for `holdfast init`: its entries, and notes on lines without a counterpart. Pure: it neither inspects the
// machine nor checks the expressions.

export type CrontabEntry = {
  /** Counted from 1. */
  readonly line: number;
  readonly cron: string;
  /** The value of CRON_TZ; null: the zone of the machine. */
  readonly timezone: string | null;
  /** The command for the shell, its % already translated. */
  readonly script: string;
  readonly shell: string;
  readonly folder: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** From the user column of a system crontab. */
  readonly user: string | null;
  /** The comment lines right above it. */
  readonly comments: readonly string[];
};

/** A line that was left out, or that means something else here. */
export type CrontabNote = { readonly line: number; readonly text: string; readonly why: string };

export type Crontab = {
  readonly entries: readonly CrontabEntry[];
  readonly notes: readonly CrontabNote[];
};

const SETTING = /^\s*(?:"(\w+)"|'(\w+)'|([A-Za-z_]\w*))\s*=(.*)$/s;
const SHELL_DEFAULT = "/bin/sh";

const REBOOT =
  "is no time: have the service manager start it with the machine, or enqueue it when your application starts";
/** Settings that do not become environment variables. */
const UNTRANSLATED: ReadonlyMap<string, string> = new Map([
  [
    "MAILTO",
    "no mail is sent: output is kept with each run (`holdfast runs logs`), alerts report failures",
  ],
  ["MAILFROM", "no mail is sent"],
  ["CONTENT_TYPE", "no mail is sent"],
  ["CONTENT_TRANSFER_ENCODING", "no mail is sent"],
  ["RANDOM_DELAY", "ticks are exact; spread them by their expressions"],
  ["START_HOURS_RANGE", "it belongs to anacron; say the hours in the expression"],
  ["LOGNAME", "programs run as the user of the instance"],
  ["USER", "programs run as the user of the instance"],
]);

export function readCrontab(text: string, { hasUser }: { readonly hasUser: boolean }): Crontab {
  const entries: CrontabEntry[] = [];
  const notes: CrontabNote[] = [];
  const settings = {
    timezone: null as string | null,
    shell: SHELL_DEFAULT,
    folder: null as string | null,
  };
  let env: Readonly<Record<string, string>> = {};
  let comments: string[] = [];
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const content = raw.trim();
    if (content === "") comments = [];
    else if (content.startsWith("#")) comments.push(content.replace(/^#+\s?/, ""));
    else if (SETTING.test(content)) {
      const { name, value } = readSetting(content);
      const why = UNTRANSLATED.get(name);
      if (why !== undefined) notes.push({ line, text: content, why });
      else if (name === "CRON_TZ") settings.timezone = value;
      else if (name === "SHELL") settings.shell = value;
      else if (name === "HOME") settings.folder = value;
      else env = { ...env, [name]: value };
      comments = [];
    } else {
      const read = readLine(content, hasUser);
      if ("why" in read) notes.push({ line, text: content, why: read.why });
      else {
        const { timezone, shell, folder } = settings;
        const { isQuiet, ...entry } = read;
        if (isQuiet)
          notes.push({
            line,
            text: content,
            why: "the leading - (no log line) has no counterpart",
          });
        if (read.user !== null) notes.push({ line, text: content, why: userNote(read.user) });
        entries.push({ line, ...entry, timezone, shell, folder, env, comments });
      }
      comments = [];
    }
  }
  return { entries, notes };
}

function userNote(user: string): string {
  return `it runs as the user of the instance, not as ${user}: start one as ${user} with a queue of its own where that matters`;
}

function readSetting(content: string): { readonly name: string; readonly value: string } {
  const [, double, single, bare, given = ""] = SETTING.exec(content) ?? [];
  const value = given.trim();
  const [, , quoted] = /^(["'])(.*)\1$/.exec(value) ?? [];
  return { name: double ?? single ?? bare ?? "", value: quoted ?? value };
}

type Line =
  | { readonly why: string }
  | (Pick<CrontabEntry, "cron" | "script" | "user"> & { readonly isQuiet: boolean });

function readLine(content: string, hasUser: boolean): Line {
  const isQuiet = /^-[\d*@]/.test(content);
  const words = isQuiet ? content.slice(1) : content;
  const fields = words.startsWith("@") ? 1 : 5;
  const pattern = new RegExp(
    `^((?:\\S+\\s+){${fields}})${hasUser ? "(\\S+)\\s+" : "()"}(.+)$`,
    "s",
  );
  const [, time = "", user = "", command = ""] = pattern.exec(words) ?? [];
  const cron = time.trim().replace(/\s+/g, " ");
  if (/^@reboot\b/i.test(words)) return { why: `@reboot ${REBOOT}` };
  if (command === "") {
    const wanted = hasUser
      ? "five time fields, a user and a command"
      : "five time fields and a command";
    return { why: `it is neither a setting nor ${wanted}` };
  }
  return { cron, user: user === "" ? null : user, script: withInput(command), isQuiet };
}

/** An unescaped % ends the command; the rest is its input, each further % a line break. */
function withInput(command: string): string {
  const [script = "", ...input] = command
    .split(/(?<!\\)%/)
    .map((part) => part.replaceAll("\\%", "%"));
  if (input.length === 0) return script.trim();
  const lines = input.map((line) => `'${line.replaceAll("'", "'\\''")}'`).join(" ");
  return `printf '%s\\n' ${lines} | { ${script.trim()}\n}`;
}
