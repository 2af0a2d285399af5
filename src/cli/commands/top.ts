// `holdfast top`: shows activity, live on a terminal, once for pipes and programs.

import type { Command } from "commander";
import { systemClock } from "../../shared/adapters/clock.js";
import { formatDuration } from "../../shared/duration-text.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { UsageError } from "../flags/usage.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { canDraw } from "../output/screen.js";
import { refuseWatchedJson, repeat, type WatchFlags, withWatchOption } from "../read-command.js";
import { EXIT } from "../shell.js";
import { endedEachMinute, lookAtAll, type TopObservation, topPage } from "../top/page.js";
import { live } from "../top/top.js";
import { firstSignal } from "../work.js";

type Flags = CommonFlags & WatchFlags;

const EVERY_MS = 2_000;
const EVERY_MIN_MS = 200;

export function topCommand(call: Call): Command {
  const command = newCommand({
    name: "top",
    summary: "Show what goes on, live: instances, queues, runs, next ticks, failures. q leaves.",
    examples: ["top", "top --watch 5s", "top --json"],
  });
  const watched = withWatchOption(command, "how often it is drawn (default: 2s)");
  return act<Flags>(withConfigOption(watched), call, async (flags) => {
    const { shell } = call;
    const { watch } = flags;
    refuseWatchedJson(shell.isJson, watch);
    if (watch !== undefined && watch < EVERY_MIN_MS)
      throw new UsageError("--watch: nobody reads faster than 200ms; give that or more.");
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      let before: TopObservation | null = null;
      const { colours } = shell;
      const look = async () => {
        const now = await lookAtAll(holdfast, systemClock.wallMs());
        const eachMinute = endedEachMinute(before, now);
        before = now;
        return { now, eachMinute };
      };
      if (!shell.isJson && canDraw(process.stdout)) {
        const everyMs = watch ?? EVERY_MS;
        const stopped = new AbortController();
        void firstSignal().then(() => stopped.abort());
        await live({
          terminal: process.stdout,
          keyboard: process.stdin,
          everyMs,
          signal: stopped.signal,
          look,
          page: ({ now, eachMinute }, trouble) => {
            const note = trouble ?? `every ${formatDuration(everyMs)}, q leaves`;
            const rows = process.stdout.rows || null;
            return topPage(now, { colours, rows, note, eachMinute });
          },
        });
        return EXIT.done;
      }
      const show = async () => {
        const { now, eachMinute } = await look();
        return { text: topPage(now, { colours, rows: null, note: "", eachMinute }), now };
      };
      if (watch !== undefined) return repeat({ shell, everyMs: watch, show });
      const { text, now } = await show();
      await shell.say(text.replace(/(?<! ) +$/gm, ""));
      await shell.printJson(now);
      return EXIT.done;
    });
  });
}
