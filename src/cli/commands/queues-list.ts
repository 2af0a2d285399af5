// `holdfast queues list`: how long every queue is, and which are paused.

import type { Command } from "commander";
import type { Queue } from "../../operations/queues.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import type { CommonFlags } from "../instance.js";
import { underPause } from "../output/pause.js";
import { newTable } from "../output/runs.js";
import { shortTime } from "../output/times.js";
import { showLook } from "../read-command.js";
import { type WatchFlags, withWatchOption } from "../repeat.js";
import { type Colours, cut, plain } from "../shell.js";

const NOTE_LENGTH_MAX = 40;

export function queuesListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List queues by name, with what is ready, waits and runs in each.",
    examples: ["queues list", "queues list --json"],
  });
  return act<CommonFlags & WatchFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags) => {
      const { shell } = call;
      return showLook({ flags, shell }, async (holdfast) => {
        const queues = await holdfast.queues.list();
        const shown = { text: listPage(queues, shell.colours), document: { queues } };
        return underPause(holdfast, shown, shell.colours);
      });
    },
  );
}

function listPage(queues: readonly Queue[], colours: Colours): string {
  if (queues.length === 0) return "No queues: no run was stored yet.";
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
