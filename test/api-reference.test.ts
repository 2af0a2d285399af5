// Keeps docs/reference/api.md equal to the code: every public member with its parameters, its result and its comment in
// the source, and every exported name. `npm run docs:api` writes the rows again, and adds new names to the last row of
// the exports.

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { exportedBy, type Member, membersOfClass } from "./support/api-members.js";

const FILE = path.resolve(import.meta.dirname, "../docs/reference/api.md");

/** The heading of each table, and the class whose members are in it. */
const TABLES = [
  ["`holdfast`", "src/holdfast.ts", "Holdfast"],
  ["`job`", "src/runs/job.ts", "Job"],
  ["`ctx`", "src/worker/handler/context.ts", "RunContext"],
  ["`holdfast.runs`", "src/runs/runs.ts", "Runs"],
  ["`holdfast.schedules`", "src/schedules/schedules.ts", "Schedules"],
  ["`holdfast.calendars`", "src/schedules/calendars.ts", "Calendars"],
  ["`holdfast.queues`", "src/operations/queues.ts", "Queues"],
  ["`holdfast.keys`", "src/operations/keys.ts", "Keys"],
  ["`holdfast.locks`", "src/locks/locks.ts", "Locks"],
  ["`holdfast.alerts`", "src/alerts/alerts.ts", "Alerts"],
  ["`holdfast.instances`", "src/operations/instances.ts", "Instances"],
  ["`holdfast.audit`", "src/operations/audit.ts", "Audit"],
  ["`holdfast.remote`", "src/remote/remote.ts", "Remote"],
  ["`kit`, of `holdfast/testing`", "src/testing/kit.ts", "TestKit"],
] as const;

const ENTRIES = [
  ["`holdfast`", "src/index.ts"],
  ["`holdfast/http`", "src/http/index.ts"],
  ["`holdfast/fastify`", "src/http/fastify.ts"],
  ["`holdfast/client`", "src/client/index.ts"],
  ["`holdfast/testing`", "src/testing/index.ts"],
] as const;

if (process.env.HOLDFAST_UPDATE_API) update();
const PAGE = readFileSync(FILE, "utf8");

test.for(TABLES)(
  "%s has every member in docs/reference/api.md, in the words of the code",
  ([heading, file, name]) => {
    const known = membersOfClass(file, name).map(row);
    expect(known.length).toBeGreaterThan(0);
    expect(known.filter((line) => line.endsWith("|  |"))).toEqual([]);
    expect(rowsOf(section(PAGE, heading))).toEqual(known);
  },
);

test.for(ENTRIES)(
  "every name that %s exports is in docs/reference/api.md, and no other",
  ([entry, file]) => {
    const { values, types } = exportedBy(file);
    const named = names(section(section(PAGE, "Exports", "## "), entry));
    expect(named).toEqual([...values, ...types].sort());
  },
);

function update(): void {
  let page = readFileSync(FILE, "utf8");
  for (const [heading, file, name] of TABLES) {
    const old = rowsOf(section(page, heading)).join("\n");
    page = page.replace(old, () => membersOfClass(file, name).map(row).join("\n"));
  }
  for (const [entry, file] of ENTRIES) {
    const old = section(section(page, "Exports", "## "), entry);
    const { values, types } = exportedBy(file);
    const known = [...values, ...types];
    const added = known.filter((name) => !names(old).includes(name)).map((name) => `\`${name}\``);
    const kept = old.replaceAll(/(, )?`(\w+)`/g, (text, _, name) =>
      known.includes(name) ? text : "",
    );
    const at = kept.lastIndexOf("`") + 1;
    page = page.replace(old, () => [kept.slice(0, at), ...added].join(", ") + kept.slice(at));
  }
  writeFileSync(FILE, page);
}

function row({ call, answers, words }: Member): string {
  const cells = [`\`${call}\``, answers && `\`${answers}\``, words];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

/** The text below a heading, up to the next one of its level or above. */
function section(page: string, heading: string, hashes = "### "): string {
  const from = page.indexOf(`\n${hashes}${heading}\n`);
  if (from < 0) return "";
  const below = page.slice(from + 1).replace(/^.*\n/, "");
  const level = hashes.trim().length;
  return below.split(new RegExp(`^#{1,${level}} `, "m"))[0] ?? "";
}

function rowsOf(text: string): string[] {
  return text.split("\n").filter((line) => line.startsWith("| `"));
}

function names(text: string): string[] {
  return [...text.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name).sort();
}
