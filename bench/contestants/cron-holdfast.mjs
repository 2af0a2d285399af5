// Holdfast's own cron engine, from the built files, because the public interface does not export it.

import { cronSchedule, nextTick } from "../../build/schedules/cron/cron.js";

export async function open() {
  return {
    /** @param {{ cron: string, timezone: string, fromMs: number }} params */
    walk({ cron, timezone, fromMs }) {
      const schedule = cronSchedule({ cron, timezone });
      let lastMs = fromMs;
      return {
        next: () => (lastMs = nextTick(schedule, lastMs)),
        restart: () => (lastMs = fromMs),
      };
    },
  };
}
