// Cron expressions in plain words.

import { expect, test } from "vitest";
import { describeCron } from "./describe.js";
import { parseCron } from "./parse.js";

test.each([
  ["* * * * *", "every minute"],
  ["*/15 * * * *", "every 15 minutes"],
  ["*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"],
  ["5 * * * *", "at minute 5 of every hour"],
  ["@hourly", "at minute 0 of every hour"],
  ["30 2 * * *", "at 02:30 every day"],
  ["0,30 2 * * *", "at 02:00 and 02:30 every day"],
  ["7 */2 * * *", "at minute 7 of every 2nd hour from 0"],
  ["*/15 9-17 * * mon-fri", "every 15 minutes during hours 9 to 17 on Monday to Friday"],
  ["0 0 1,15 * *", "at 00:00 on days 1 and 15 of the month"],
  ["0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday"],
  [
    "0 0 1-7 * */3",
    "at 00:00 on days 1 to 7 of the month, if that is Sunday, Wednesday and Saturday",
  ],
  ["0 12 L * *", "at 12:00 on the last day of the month"],
  [
    "0 12 15W,LW * *",
    "at 12:00 on the weekday nearest to day 15 and the last weekday of the month",
  ],
  ["0 12 L-3 * *", "at 12:00 on 3 days before the last day of the month"],
  ["0 12 * * 5#3,1L", "at 12:00 on the third Friday and the last Monday of the month"],
  ["0 0 1 1 *", "at 00:00 on day 1 of the month in January"],
  ["0 8 * 1-3,12 *", "at 08:00 in January to March and December"],
  ["*/10 * * * * *", "every 10 seconds"],
  ["* * * * * *", "every second"],
  ["15,45 30 2 * * *", "at 02:30:15 and 02:30:45 every day"],
  ["*/10 5 9-17 * * *", "every 10 seconds in minute 5 during hours 9 to 17"],
])("%s is %s", (cron, words) => {
  expect(describeCron(parseCron(cron, "cron"))).toBe(words);
});
