// Makes, lists and revokes named keys on the command line: `holdfast keys`; by itself it lists them.

import type { Command } from "commander";
import type { AccessKey, CreatedKey } from "../../operations/keys.js";
import { SCOPES, type Scope } from "../../operations/rules/scopes.js";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, listedByName, newCommand, withConfigOption } from "../command.js";
import { UsageError } from "../failure.js";
import { oneOf, readDurationFlag, readName } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { newTable, shortTime } from "../output/format.js";
import { runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, EXIT, plain } from "../shell.js";

export function keysCommand(call: Call): Command {
  const command = newCommand({
    name: "keys",
    summary: "List, create and revoke named keys of the HTTP API.",
    examples: ["keys", "keys create deploy --scope enqueue --expires 90d"],
  });
  listedByName(command, keysListCommand(call));
  for (const add of [keysCreateCommand, keysRevokeCommand]) command.addCommand(add(call));
  return command;
}

// `holdfast keys list`: every key, without its secret.

function keysListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List named keys with scopes, limits, author, last use and expiry.",
    examples: ["keys list", "keys list --json"],
  });
  return act<CommonFlags & WatchFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags) => {
      const { shell } = call;
      return runReadCommand({ flags, shell }, async (holdfast) => {
        const keys = await holdfast.keys.list();
        return { text: listPage(keys, shell.colours), document: { keys } };
      });
    },
  );
}

function listPage(keys: readonly AccessKey[], colours: Colours): string {
  if (keys.length === 0)
    return "No named keys. To create one: holdfast keys create <name> --scope read";
  const head = ["name", "scopes", "jobs", "queues", "created", "by", "last used", "expires"];
  const table = newTable(head, colours);
  for (const key of keys) {
    const expires = key.expiresAt === null ? "never" : shortTime(key.expiresAt);
    table.push([
      plain(key.name),
      key.scopes.join(", "),
      namesOf(key.jobs),
      namesOf(key.queues),
      shortTime(key.createdAt),
      plain(key.createdBy),
      key.lastUsedAt === null ? "never" : shortTime(key.lastUsedAt),
      key.isExpired ? colours.yellow(`${expires} (expired)`) : expires,
    ]);
  }
  return table.toString();
}

function namesOf(names: readonly string[] | null): string {
  return names === null ? "all" : plain(names.join(", "));
}

// `holdfast keys create`: the secret is shown once.

type CreateFlags = CommonFlags & {
  readonly scope?: readonly Scope[];
  readonly jobs?: readonly string[];
  readonly queues?: readonly string[];
  readonly expires?: number;
};

function keysCreateCommand(call: Call): Command {
  const command = newCommand({
    name: "create",
    summary: "Create a named key and show its secret once.",
    examples: [
      "keys create deploy --scope enqueue --expires 90d",
      "keys create eu-worker --scope worker --jobs study --queues eu",
    ],
  })
    .argument("<name>", "name of the key, as the audit trail will show it", readName)
    .option("--scope <scopes>", `${SCOPES.join(", ")}; several separated by commas`, readScopes)
    .option("--jobs <names>", "only these jobs, separated by commas", readNames)
    .option("--queues <names>", "only these queues, separated by commas", readNames)
    .option(
      "--expires <duration>",
      "it stops working after this time, for example 90d",
      readDurationFlag,
    );
  return act<CreateFlags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    const { scope: scopes, jobs, queues, expires } = flags;
    if (scopes === undefined)
      throw new UsageError(`Add --scope with some of ${SCOPES.join(", ")}.`);
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const key = await holdfast.keys.create(name, { scopes, jobs, queues, expires });
      await shell.say(createdPage(key));
      await shell.printJson(key);
      return EXIT.done;
    });
  });
}

function createdPage({ name, secret, scopes, expiresAt }: CreatedKey): string {
  const end = expiresAt === null ? "does not expire" : `expires ${shortTime(expiresAt)}`;
  return [
    `Key ${quoteShort(name)} opens ${scopes.join(", ")} and ${end}.`,
    "Its secret, shown only now and stored nowhere:",
    "",
    `  ${secret}`,
  ].join("\n");
}

function readScopes(text: string, before: readonly Scope[] = []): readonly Scope[] {
  return [...before, ...text.split(",").map((each) => oneOf(SCOPES)(each.trim()))];
}

function readNames(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(",").map((each) => readName(each.trim()))];
}

// `holdfast keys revoke`: ends a key at once.

function keysRevokeCommand(call: Call): Command {
  const command = newCommand({
    name: "revoke",
    summary: "Revoke a named key and end its sessions.",
    examples: ["keys revoke deploy"],
  }).argument("<name>", "name of the key", readName);
  return act<CommonFlags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      await holdfast.keys.revoke(name);
      await shell.say(`Key ${quoteShort(name)} is revoked, on every instance.`);
      await shell.printJson({ name, revoked: true });
      return EXIT.done;
    });
  });
}
