// The text of a first configuration file: with an example job, or with what a crontab asks for. Pure; the
// result is a program that somebody reads and changes, so it is written as one would write it.

import type { CrontabEntry } from "../../schedules/cron/crontab.js";

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
  return `// What a crontab asked for, as schedules of the job "shell". Each program is listed here by name, and its
// schedule only chooses it. Two things are better than cron: while a run goes on the next one is skipped
// (overlap: "allow" would start it beside the other), and of ticks that were missed while nothing ran the
// newest one is made up for (missed: "skip" would not).

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
  const said = comments.length > 0 ? comments : [`Line ${line} of the crontab${as}.`];
  const options = [
    `cron: ${JSON.stringify(cron)}`,
    ...(zone === "UTC" ? [] : [`timezone: ${JSON.stringify(zone)}`]),
    `input: { command: ${JSON.stringify(name)} }`,
  ].join(", ");
  const lines = said.map((each) => `// ${each}`.trimEnd());
  return [...lines, `holdfast.schedule(${JSON.stringify(name)}, "shell", { ${options} });`].join(
    "\n",
  );
}

const NAME_LENGTH_MAX = 40;
/** Words that say how a program is called, not which. */
const AROUND =
  /^(env|nice|nohup|ionice|flock|timeout|sudo|exec|time|cd|\.|source|test|\[|sh|bash|-.*|\S[^\s=]*=\S*|[&|;(){}<>]+|\d+|\/?)$/;

/** A name for each, after its program; no two alike. */
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
