// Calendars through the program.

import { afterAll, beforeAll, expect, test } from "vitest";
import { configText, openTerminal, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeAll(async () => {
  terminal = openTerminal();
  terminal.write({ "holdfast.config.mjs": configText('holdfast.job("report", {});') });
  expect(await terminal.holdfast(["migrate"])).toMatchObject({ code: 0 });
});
afterAll(() => terminal.close());

async function json(...args: string[]) {
  const ended = await terminal.holdfast([...args, "--json"]);
  return { ...ended, document: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
}

const ICS = `BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20301225
SUMMARY:Christmas
END:VEVENT
END:VCALENDAR
`.replaceAll("\n", "\r\n");

test("set reads every flag, and list and show print the exclusions", async () => {
  terminal.write({ "holidays.ics": ICS });
  const { code, stdout, stderr } = await terminal.holdfast([
    ...[
      "calendars",
      "set",
      "office",
      "--days",
      "mon-wed,fri",
      "--dates",
      "05-01,2030-12-24..2030-12-26",
    ],
    ...["--window", "22:00..06:00", "--window", "mon-fri 12:00..13:00"],
    ...["--ics", "holidays.ics", "--timezone", "Europe/Paris", "--by", "ada"],
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toBe(
    "Calendar office: mon, tue, wed and fri only; not on 2 dates; not 12:00 to 13:00 on mon to fri; " +
      'not 22:00 to 06:00 every day; not during "Christmas"; Europe/Paris.\n',
  );
  const { document } = await json("calendars", "show", "office");
  expect(document).toMatchObject({
    name: "office",
    rules: {
      timezone: "Europe/Paris",
      days: ["mon", "tue", "wed", "fri"],
      dates: ["05-01", "2030-12-24..2030-12-26"],
      windows: [
        { kind: "daily", from: "12:00", to: "13:00", days: ["mon", "tue", "wed", "thu", "fri"] },
        { kind: "daily", from: "22:00", to: "06:00", days: null },
      ],
      events: [{ summary: "Christmas" }],
    },
    schedules: [],
    version: 1,
    updatedBy: "ada",
  });
  const shown = await terminal.holdfast(["calendars", "show", "office"]);
  expect(shown.stdout).toMatch(/^calendar +office\nrule +mon, tue/);
  expect(shown.stdout).toMatch(
    /^events +Christmas\nused by +no schedule\nversion +1, changed .* by ada$/m,
  );
  const list = await terminal.holdfast(["calendars", "list"]);
  expect(list.stdout).toMatch(/^name +rule +used by +changed/);
  expect(list.stdout).toMatch(/^office +mon, tue, wed and fri only; not on 2 dates; .*…/m);
  expect((await json("calendars", "list")).document.calendars).toHaveLength(1);
});

test("days may pass the end of the week", async () => {
  const { document } = await json("calendars", "set", "weekend", "--days", "sat-mon");
  expect(document.rules.days).toEqual(["mon", "sat", "sun"]);
  await terminal.holdfast(["calendars", "delete", "weekend"]);
});

test("schedules follow a calendar that changes, and keep it from being deleted", async () => {
  await json("calendars", "set", "noon", "--window", "11:00..13:00");
  const flags = ["--job", "report", "--cron", "0 * * * *", "--calendar", "noon"];
  await json("schedules", "create", "hourly", ...flags);
  const hours = async () => {
    const { document } = await json("schedules", "preview", "hourly", "--count", "30");
    return new Set(document.ticks.map((tick: string) => tick.slice(11, 13)));
  };
  const before = await hours();
  expect([before.has("11"), before.has("12"), before.has("13")]).toEqual([false, false, true]);
  const changed = await terminal.holdfast(["calendars", "set", "noon", "--window", "13:00..14:00"]);
  expect(changed.stdout).toBe("Calendar noon: not 13:00 to 14:00 every day.\nUsed by hourly.\n");
  const after = await hours();
  expect([after.has("11"), after.has("12"), after.has("13")]).toEqual([true, true, false]);
  const refused = await terminal.holdfast(["calendars", "delete", "noon"]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(/^Calendar noon is used by hourly\. Nothing was removed\./);
  await json("schedules", "update", "hourly", "--unset", "calendar");
  expect(await json("calendars", "delete", "noon")).toMatchObject({
    code: 0,
    document: { name: "noon", answer: "deleted" },
  });
});

test("an unknown calendar is answered with the one that was probably meant", async () => {
  await json("calendars", "set", "business-days", "--days", "mon-fri");
  for (const verb of ["show", "delete"]) {
    expect(await terminal.holdfast(["calendars", verb, "busines-days"])).toMatchObject({
      code: 1,
      stdout: "",
      stderr:
        "There is no calendar busines-days. Did you mean business-days?\n`holdfast calendars list` shows them.\n",
    });
  }
});

const MISTAKES: readonly [name: string, args: string[], message: RegExp][] = [
  ["nothing", [], /^Name what it excludes: --days mon-fri/],
  ["an unknown day", ["--days", "mon-fry"], /^--days: must be one of mon, .*mon-fry/],
  ["an impossible date", ["--dates", "2030-02-30"], /^--dates: .*2030-02-30/],
  ["half a window", ["--window", "22:00"], /must be from\.\.to, for example 22:00\.\.06:00/],
  ["an impossible window", ["--window", "25:00..26:00"], /^--window: .*25:00/],
  ["an unknown zone", ["--days", "mon", "--tz", "Paris"], /^--timezone: .*unknown/],
  ["a file that is not there", ["--ics", "none.ics"], /^--ics: none\.ics could not be read/],
  ["a file of another kind", ["--ics", "holdfast.config.mjs"], /^--ics: /],
];

test.for(MISTAKES)("%s is refused", async ([, args, message]) => {
  const { code, stdout, stderr } = await terminal.holdfast(["calendars", "set", "x", ...args]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(message);
});
