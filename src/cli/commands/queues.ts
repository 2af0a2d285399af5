// `holdfast queues`: the group of commands that list queues, pause them and resume them;
// by itself it lists them.

import type { Command } from "commander";
import type { Queue } from "../../operations/queues.js";
import { quoteShort } from "../../shared/suggest.js";
import { act, type Call, listedByName, newCommand, withConfigOption } from "../command.js";
import { readName } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { newTable, shortTime } from "../output/format.js";
import { runReadCommand, type WatchFlags, withWatchOption } from "../read-command.js";
import { type Colours, cut, EXIT, plain } from "../shell.js";
import { underPause } from "./pause.js";

export function queuesCommand(call: Call): Command {
  const command = newCommand({
    name: "queues",
    summary: "List queues, pause and resume them.",
    examples: ["queues", 'queues pause mail --note "the relay is down"'],
  });
  listedByName(command, queuesListCommand(call));
  for (const add of [queuesPauseCommand, queuesResumeCommand]) command.addCommand(add(call));
  return command;
}

// `holdfast queues list`: how long every queue is, and which are paused.

const NOTE_LENGTH_MAX = 40;

function queuesListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List queues by name, with their ready, waiting and running runs.",
    examples: ["queues list", "queues list --json"],
  });
  return act<CommonFlags & WatchFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags) => {
      const { shell } = call;
      return runReadCommand({ flags, shell }, async (holdfast) => {
        const queues = await holdfast.queues.list();
        const shown = { text: listPage(queues, shell.colours), document: { queues } };
        return underPause(holdfast, shown, shell.colours);
      });
    },
  );
}

function listPage(queues: readonly Queue[], colours: Colours): string {
  if (queues.length === 0) return "No queues: no run has been stored yet.";
  const table = newTable(["name", "ready", "waiting", "running", "paused", "note"], colours);
  for (const { name, ready, waiting, running, pausedAt, pauseNote } of queues) {
    table.push([
      plain(name),
      String(ready),
      String(waiting),
      String(running),
      pausedAt === null ? "" : colours.yellow(shortTime(pausedAt)),
      cut(plain(pauseNote ?? ""), NOTE_LENGTH_MAX),
    ]);
  }
  return table.toString();
}

// `holdfast queues pause`: nothing of the queue is claimed until it is resumed.

type Flags = CommonFlags & { readonly note?: string };

function queuesPauseCommand(call: Call): Command {
  const command = newCommand({
    name: "pause",
    summary: "Pause a queue: its runs wait; running ones go on.",
    examples: ['queues pause mail --note "the relay is down"'],
  })
    .argument("<name>", "name of the queue", readName)
    .option("--note <text>", "the reason, shown to others");
  return act<Flags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const queue = await holdfast.queues.pause(name, flags.note);
      const note = queue.pauseNote === null ? "" : ` (${plain(queue.pauseNote)})`;
      const { ready, running } = queue;
      await shell.say(
        `Queue ${quoteShort(name)} is paused${note}: ${ready} ready, ${running} running go on.`,
      );
      await shell.printJson(queue);
      return EXIT.done;
    });
  });
}

// `holdfast queues resume`: the runs of the queue are claimed again.

function queuesResumeCommand(call: Call): Command {
  const command = newCommand({
    name: "resume",
    summary: "Resume a queue.",
    examples: ["queues resume mail"],
  }).argument("<name>", "name of the queue", readName);
  return act<CommonFlags>(withConfigOption(command), call, async (flags, name = "") => {
    const { shell } = call;
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      const queue = await holdfast.queues.resume(name);
      await shell.say(`Queue ${quoteShort(name)} is resumed: ${queue.ready} ready.`);
      await shell.printJson(queue);
      return EXIT.done;
    });
  });
}
