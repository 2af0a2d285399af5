// cron-parser: parsed once, then iterated, which saves it reading a date for each tick.

import { CronExpressionParser } from "cron-parser";

export async function open() {
  return {
    /** @param {{ cron: string, timezone: string, fromMs: number }} params */
    walk({ cron, timezone, fromMs }) {
      const expression = CronExpressionParser.parse(cron, {
        tz: timezone,
        currentDate: new Date(fromMs),
      });
      return {
        next: () => expression.next().getTime(),
        restart: () => expression.reset(),
      };
    },
  };
}
