// `holdfast locks release`: takes a lock from whoever holds it.

import type { Command } from "commander";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { readName } from "../flags/names.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

type Flags = CommonFlags & { readonly note?: string };

export function locksReleaseCommand(call: Call): Command {
  const command = newCommand({
    name: "release",
    summary: "Take a lock from its holder, who hears of it when it renews its lease.",
    examples: ['locks release import --note "stuck since the deploy"'],
  })
    .argument("<name>", "name of the lock", readName)
    .option("--note <text>", "why, kept in its history");
  return act<Flags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "look", needsCode: true, shell }, async (holdfast) => {
      const answer = await holdfast.locks.release(name, flags.note);
      await shell.say(
        answer.released
          ? `Lock ${quoteShort(name)} was taken from ${plain(answer.holder)} (fence ${answer.fence}).`
          : `Nobody holds lock ${quoteShort(name)}.`,
      );
      await shell.answer({ name, ...answer });
      return answer.released ? EXIT.done : EXIT.no;
    });
  });
}
