// Writes a first project into a folder: adds missing files and lines, and never overwrites existing ones. Returns the files that
// it wrote, changed and kept, and the commands to type next.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import type { CrontabEntry } from "../../schedules/cron/crontab.js";
import { CONFIG_NAMES } from "../config-file.js";
import { DeclinedError } from "../failure.js";
import { environmentText } from "../package-files.js";

export type Written = {
  readonly written: readonly string[];
  readonly changed: readonly { readonly file: string; readonly added: readonly string[] }[];
  readonly kept: readonly string[];
  readonly next: readonly string[];
};

const IGNORED = [".holdfast/", ".env"];
/** Node strips types by itself from here on. */
const TYPES_FROM = [22, 18] as const;
const TSX_RANGE = "^4.20.0";

type Manifest = {
  readonly type?: unknown;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
} & Readonly<Record<string, unknown>>;

/** TypeScript if the folder uses it. A folder of CommonJS files gets an .mjs file, because CommonJS cannot load this package. */
export function kindOfFolder(folder: string): ConfigKind {
  const { type, dependencies, devDependencies } = readManifest(folder) ?? { type: "module" };
  if (type !== "module") return "mjs";
  const hasTypes = "typescript" in { ...dependencies, ...devDependencies };
  return hasTypes || existsSync(path.join(folder, "tsconfig.json")) ? "ts" : "mjs";
}

export function writeProject(params: {
  readonly folder: string;
  readonly kind: ConfigKind;
  readonly config: string;
  readonly isForced: boolean;
  readonly version: string;
}): Written {
  const { folder, kind, config, isForced, version } = params;
  refuseOther(folder, kind, isForced);
  const manifest = readManifest(folder);
  mkdirSync(folder, { recursive: true });
  const written: string[] = [];
  const kept: string[] = [];
  const changed: { file: string; added: readonly string[] }[] = [];
  const put = (file: string, text: string) => {
    writeFileSync(path.join(folder, file), text);
    written.push(file);
  };
  put(`holdfast.config.${kind}`, config);
  if (existsSync(path.join(folder, ".env.example")) && !isForced) kept.push(".env.example");
  else put(".env.example", environmentText());
  const { text, added } = extendManifest(folder, manifest, { kind, version });
  if (manifest === null) put("package.json", text);
  else if (added.length > 0) {
    writeFileSync(path.join(folder, "package.json"), text);
    changed.push({ file: "package.json", added });
  } else kept.push("package.json");
  const ignoring = extendIgnored(folder);
  if (ignoring !== null) {
    const isNew = !existsSync(path.join(folder, ".gitignore"));
    writeFileSync(path.join(folder, ".gitignore"), ignoring.text);
    if (isNew) written.push(".gitignore");
    else changed.push({ file: ".gitignore", added: ignoring.added });
  } else kept.push(".gitignore");
  return { written, changed, kept, next: nextCommands(folder, added) };
}

/** Commands use the first configuration file that they find: a second one would be ignored silently. */
function refuseOther(folder: string, kind: ConfigKind, isForced: boolean): void {
  const existing = CONFIG_NAMES.filter((name) => existsSync(path.join(folder, name)));
  const blocking = existing.filter((name) => !isForced || name !== `holdfast.config.${kind}`);
  const [first] = blocking;
  if (first === undefined) return;
  throw new DeclinedError(
    isForced
      ? `There is ${first}, which would be taken before or beside holdfast.config.${kind}; move it away. Nothing was written.`
      : `There is ${first} already; nothing was written. --force overwrites it, \`holdfast dev\` runs it.`,
    "PROJECT_EXISTS",
  );
}

function extendManifest(
  folder: string,
  manifest: Manifest | null,
  { kind, version }: { readonly kind: ConfigKind; readonly version: string },
): { readonly text: string; readonly added: readonly string[] } {
  const before: Manifest = manifest ?? {
    name: packageName(folder),
    private: true,
    type: "module",
  };
  const added: string[] = [];
  const { scripts = {}, dependencies = {}, devDependencies = {} } = before;
  const newScripts: Record<string, string> = {};
  for (const name of ["dev", "start"]) {
    const call = `holdfast ${name}`;
    if (Object.values(scripts).includes(call)) continue;
    const free = [name, `holdfast:${name}`].find((each) => !(each in scripts));
    if (free === undefined) continue;
    newScripts[free] = call;
    added.push(`script ${free}`);
  }
  const hasLibrary = "holdfast" in { ...dependencies, ...devDependencies };
  if (!hasLibrary) added.push("dependency holdfast");
  const needsTsx =
    kind === "ts" && !canLoadTypes() && !("tsx" in { ...dependencies, ...devDependencies });
  if (needsTsx) added.push("development dependency tsx");
  const after = {
    ...before,
    scripts: { ...scripts, ...newScripts },
    dependencies: { ...dependencies, ...(hasLibrary ? {} : { holdfast: `^${version}` }) },
    ...(needsTsx ? { devDependencies: { ...devDependencies, tsx: TSX_RANGE } } : {}),
  };
  return { text: `${JSON.stringify(after, null, indentOf(folder))}\n`, added };
}

function canLoadTypes(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [wantedMajor, wantedMinor] = TYPES_FROM;
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

function extendIgnored(
  folder: string,
): { readonly text: string; readonly added: readonly string[] } | null {
  const before = readText(path.join(folder, ".gitignore")) ?? "";
  const lines = before.split(/\r?\n/).map((line) => line.trim().replace(/^\//, ""));
  const wanted = before === "" ? ["node_modules/", ...IGNORED] : IGNORED;
  const added = wanted.filter(
    (each) => !lines.includes(each) && !lines.includes(each.replace(/\/$/, "")),
  );
  if (added.length === 0) return null;
  const gap = before === "" || before.endsWith("\n") ? "" : "\n";
  return { text: `${before}${gap}${added.join("\n")}\n`, added };
}

/** The commands to type next, in order. */
function nextCommands(folder: string, added: readonly string[]): readonly string[] {
  const needsInstall = added.some((each) => each.includes("dependency")) || !isInstalled(folder);
  return [...(needsInstall ? ["npm install"] : []), "npx holdfast dev"];
}

function isInstalled(folder: string): boolean {
  try {
    createRequire(path.join(folder, "holdfast.config.mjs")).resolve("holdfast/package.json");
    return true;
  } catch {
    return false;
  }
}

function readManifest(folder: string): Manifest | null {
  const text = readText(path.join(folder, "package.json"));
  if (text === null) return null;
  try {
    return JSON.parse(text) as Manifest;
  } catch {
    throw new DeclinedError(
      "package.json is not JSON; nothing was written. Fix it first.",
      "PROJECT_EXISTS",
    );
  }
}

function indentOf(folder: string): string | number {
  const text = readText(path.join(folder, "package.json")) ?? "";
  return /^[ \t]+(?=")/m.exec(text)?.[0] ?? 2;
}

function packageName(folder: string): string {
  const name = path
    .basename(path.resolve(folder))
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-");
  return name.replace(/^-+|(?<!-)-+$/g, "") || "schedules";
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

export type ConfigKind = "ts" | "mjs";

const DATABASE = `  // HOLDFAST_DATABASE_URL, else a SQLite file. With PostgreSQL: "postgres://user@host/name".
  database: process.env.HOLDFAST_DATABASE_URL ?? "sqlite:.holdfast/holdfast.db",`;

export function exampleConfig(kind: ConfigKind): string {
  const input = kind === "ts" ? "input: { name: string }" : "input";
  return `// What Holdfast runs, and when. \`npx holdfast dev\` runs it here and reloads it on change;
// \`npx holdfast start\` runs it in production.

import { Holdfast } from "holdfast";

const holdfast = new Holdfast({
${DATABASE}
});

const hello = holdfast.job("hello", {
  timeout: "1m",
  retry: { attempts: 3 },
  async run(${input}, ctx) {
    ctx.log.info({ attempt: ctx.attempt }, \`saying hello to \${input.name}\`);
    return { said: \`Hello \${input.name}!\` };
  },
});

// Try "0 9 * * mon-fri" with a timezone in place of the interval: { cron, timezone: "Europe/Paris", input }.
holdfast.schedule("hello-world", hello, { every: "10s", input: { name: "world" } });

export default holdfast;
`;
}

export type NamedEntry = CrontabEntry & { readonly name: string; readonly zone: string };

export function crontabConfig(entries: readonly NamedEntry[]): string {
  return `// The lines of a crontab as schedules of the job "shell". Each program is listed here by name, and its schedule
// selects it by that name. Two things are better than cron: while a run is active the next tick is skipped
// (overlap: "allow" starts a second run beside it), and after downtime the most recent missed run is executed
// (missed: "skip" turns that off).

import { Holdfast } from "holdfast";

const holdfast = new Holdfast({
${DATABASE}
  shell: {
    commands: {
${entries.map(commandText).join("\n")}
    },
  },
});

${entries.map(scheduleText).join("\n\n")}

export default holdfast;
`;
}

function commandText({ name, shell, script, folder, env }: NamedEntry): string {
  const command = `[${[shell, "-c", script].map((each) => JSON.stringify(each)).join(", ")}]`;
  const more = [
    ...(folder === null ? [] : [`folder: ${JSON.stringify(folder)}`]),
    ...(Object.keys(env).length === 0 ? [] : [`env: ${envText(env)}`]),
  ];
  const value = more.length === 0 ? command : `{ command: ${command}, ${more.join(", ")} }`;
  return `      ${JSON.stringify(name)}: ${value},`;
}

function envText(env: Readonly<Record<string, string>>): string {
  const members = Object.entries(env).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `{ ${members.join(", ")} }`;
}

function scheduleText({ name, cron, zone, comments, line, user }: NamedEntry): string {
  const as = user === null ? "" : `, there run as ${user}`;
  const notes = comments.length > 0 ? comments : [`Line ${line} of the crontab${as}.`];
  const options = [
    `cron: ${JSON.stringify(cron)}`,
    ...(zone === "UTC" ? [] : [`timezone: ${JSON.stringify(zone)}`]),
    `input: { command: ${JSON.stringify(name)} }`,
  ].join(", ");
  const lines = notes.map((each) => `// ${each}`.trimEnd());
  return [...lines, `holdfast.schedule(${JSON.stringify(name)}, "shell", { ${options} });`].join(
    "\n",
  );
}

const NAME_LENGTH_MAX = 40;
/** Words of a command that do not name its program. */
const AROUND =
  /^(env|nice|nohup|ionice|flock|timeout|sudo|exec|time|cd|\.|source|test|\[|sh|bash|-.*|\S[^\s=]*=\S*|[&|;(){}<>]+|\d+|\/?)$/;

/** Names each entry after its program; every name is unique. */
export function nameEntries(
  entries: readonly CrontabEntry[],
  hostZone: string,
): readonly NamedEntry[] {
  const taken = new Map<string, number>();
  return entries.map((entry) => {
    const base = slug(entry.script);
    const count = (taken.get(base) ?? 0) + 1;
    taken.set(base, count);
    const name = count === 1 ? base : `${base}-${count}`;
    return { ...entry, name, zone: entry.timezone ?? hostZone };
  });
}

function slug(script: string): string {
  const body = script.replace(/^printf '%s\\n' .* \| \{ /s, "").replace(/cd\s+\S+\s*(&&|;)/g, "");
  const word = body.split(/\s+/).find((each) => each !== "" && !AROUND.test(each)) ?? "command";
  const plain = (word.split("/").filter(Boolean).at(-1) ?? "")
    .replace(/\.(sh|py|rb|pl|js|mjs|php)$/, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|(?<!-)-+$/g, "")
    .slice(0, NAME_LENGTH_MAX);
  return plain === "" ? "command" : plain;
}
