// `holdfast audit`: the group of commands about who changed what.

import type { Command } from "commander";
import type { AuditListOptions, AuditRecord } from "../../operations/audit.js";
import { AUDIT_NOUNS } from "../../operations/rules/audit.js";
import { act, type Call, listedByName, newCommand, withConfigOption } from "../command.js";
import { oneOf, wholeNumber } from "../flags/read.js";
import type { CommonFlags } from "../instance.js";
import { newTable, shortTime } from "../output/format.js";
import { filterOf, runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, cut, plain } from "../shell.js";

export function auditCommand(call: Call): Command {
  const command = newCommand({
    name: "audit",
    summary: "Show who changed what, from where, when and why.",
    examples: ["audit", "audit --since 24h"],
  });
  return listedByName(command, auditListCommand(call));
}

// `holdfast audit list`: changes by people and programs, newest first.

type Flags = CommonFlags & WatchFlags & AuditListOptions;

const FILTERS = ["since", "noun", "name", "who", "limit", "cursor"] as const;
const CHANGE_LENGTH_MAX = 60;

function auditListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List changes that people and programs made, newest first.",
    examples: ["audit list --since 24h --noun schedule", "audit list --who ada@laptop --json"],
  })
    .option("--since <when>", "since then: 24h, or an instant")
    .option("--noun <noun>", AUDIT_NOUNS.join(", "), oneOf(AUDIT_NOUNS))
    .option(
      "--name <name>",
      "of this schedule, run, queue, lock, calendar or instance; of an id also its beginning or end",
    )
    .option("--who <name>", "by this actor, as the list shows it")
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <cursor>", "continue where an earlier list ended");
  return act<Flags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    const filter: AuditListOptions = filterOf(flags, FILTERS);
    return runReadCommand({ flags, shell }, async (holdfast) => {
      const page = await holdfast.audit.list(filter);
      const more = page.nextCursor === null ? "" : `\nMore: add --cursor ${page.nextCursor}`;
      return { text: `${listPage(page.entries, shell.colours)}${more}`, document: page };
    });
  });
}

function listPage(entries: readonly AuditRecord[], colours: Colours): string {
  if (entries.length === 0) return "No changes.";
  const table = newTable(["at", "who", "via", "what", "name", "change"], colours);
  for (const { at, who, via, address, verb, noun, name, note, change } of entries) {
    const texts = [change, note === null ? null : `(${note})`].filter((each) => each !== null);
    table.push([
      shortTime(at),
      plain(who),
      address === null ? via : `${via} ${plain(address)}`,
      `${verb} ${noun}`,
      plain(name ?? ""),
      cut(plain(texts.join(" ")), CHANGE_LENGTH_MAX),
    ]);
  }
  return table.toString().replace(/(?<! ) +$/gm, "");
}
