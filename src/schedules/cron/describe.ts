// Describes a cron expression in plain English. Every expression gets a correct sentence, common ones a short one.

import { type BitSet, hasValue, type SpecialDay } from "./days.js";
import type { CronExpression } from "./parse.js";

const MONTHS =
  "January February March April May June July August September October November December";
const MONTH_NAMES = ["", ...MONTHS.split(" ")];
const WEEKDAY_NAMES = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const ORDINALS = ["", "first", "second", "third", "fourth", "fifth"];
const TIMES_LISTED_MAX = 6;

/** For example "at 02:30 on Monday to Friday". */
export function describeCron({ fields }: CronExpression): string {
  const { second, minute, hour, day, month, weekday } = fields;
  const times = timeWords({ second, minute, hour });
  const days = dayWords(day, weekday);
  const months =
    month.text === "*"
      ? ""
      : `in ${valuesText(list(month.values, 13), (each) => MONTH_NAMES[each])}`;
  const everyDay = days === "" && months === "" && !times.includes("every") ? "every day" : days;
  return [times, everyDay, months].filter((part) => part !== "").join(" ");
}

type Named = {
  readonly text: string;
  readonly values: BitSet;
  readonly special: readonly SpecialDay[];
};

function timeWords(fields: { second: Named; minute: Named; hour: Named }): string {
  const seconds = list(fields.second.values, 60);
  const minutes = list(fields.minute.values, 60);
  const hours = list(fields.hour.values, 24);
  if (seconds.length * minutes.length * hours.length <= TIMES_LISTED_MAX) {
    const times = hours.flatMap((h) =>
      minutes.flatMap((m) => seconds.map((s) => clockText(h, m, s))),
    );
    return `at ${joined(times)}`;
  }
  const isOnTheMinute = seconds.length === 1 && seconds[0] === 0;
  const minuteStep = stepOf(fields.minute.text, 60);
  const hourStep = stepOf(fields.hour.text, 24);
  const parts: string[] = [];
  if (isOnTheMinute) parts.push(unitWords("minute", fields.minute.text, minutes));
  else {
    parts.push(unitWords("second", fields.second.text, seconds));
    if (minutes.length < 60) parts.push(`in ${counted("minute", minutes)}`);
  }
  // "Every 15 minutes" needs no "of every hour", "at minute 5" does.
  const isPlain = isOnTheMinute ? minuteStep > 0 : minutes.length === 60;
  if (hourStep > 1) parts.push(`of every ${ordinal(hourStep)} hour from 0`);
  else if (hours.length < 24) parts.push(`during ${counted("hour", hours)}`);
  else if (!isPlain) parts.push("of every hour");
  return parts.join(" ");
}

function ordinal(value: number): string {
  return `${value}${value === 2 ? "nd" : value === 3 ? "rd" : "th"}`;
}

function unitWords(unit: string, text: string, values: readonly number[]): string {
  const step = stepOf(text, 60);
  if (step === 1) return `every ${unit}`;
  if (step > 1) return `every ${step} ${unit}s`;
  return `at ${counted(unit, values)}`;
}

function counted(unit: string, values: readonly number[]): string {
  return `${unit}${values.length > 1 ? "s" : ""} ${valuesText(values, String)}`;
}

/** The step of `*` and of a step that divides its unit evenly; 0 for anything else. */
function stepOf(text: string, count: number): number {
  if (text === "*") return 1;
  const [, step = "0"] = /^\*\/(\d+)$/.exec(text) ?? [];
  return count % Number(step) === 0 ? Number(step) : 0;
}

function dayWords(day: Named & { isOpen: boolean }, weekday: Named & { isOpen: boolean }): string {
  const byDay = isAny(day.text) ? "" : dayOfMonthWords(day);
  const byWeekday = isAny(weekday.text) ? "" : weekdayWords(weekday);
  if (byDay === "" || byWeekday === "") return byDay || byWeekday;
  return day.isOpen || weekday.isOpen
    ? `${byDay}, if that is ${byWeekday.replace(/^on /, "")}`
    : `${byDay} or ${byWeekday}`;
}

function isAny(text: string): boolean {
  return text === "*" || text === "?";
}

function dayOfMonthWords({ values, special }: Named): string {
  const plain = list(values, 32);
  const parts = plain.length === 0 ? [] : [counted("day", plain)];
  return `on ${joined([...parts, ...special.map(specialText)])} of the month`;
}

function weekdayWords({ values, special }: Named): string {
  const plain = list(values, 7);
  const parts = plain.length === 0 ? [] : [valuesText(plain, (each) => WEEKDAY_NAMES[each])];
  const ofMonth = special.length > 0 ? " of the month" : "";
  return `on ${joined([...parts, ...special.map(specialText)])}${ofMonth}`;
}

function specialText(special: SpecialDay): string {
  switch (special.kind) {
    case "last":
      return special.before === 0 ? "the last day" : `${special.before} days before the last day`;
    case "last weekday":
      return "the last weekday";
    case "nearest weekday":
      return `the weekday nearest to day ${special.day}`;
    case "nth":
      return `the ${ORDINALS[special.nth]} ${WEEKDAY_NAMES[special.weekday]}`;
    case "last of weekday":
      return `the last ${WEEKDAY_NAMES[special.weekday]}`;
  }
}

function list(values: BitSet, size: number): number[] {
  return Array.from({ length: size }, (_, value) => value).filter((each) => hasValue(values, each));
}

/** Runs of three and more become "1 to 5". */
function valuesText(
  values: readonly number[],
  name: (value: number) => string | undefined,
): string {
  const parts: string[] = [];
  for (let index = 0; index < values.length; ) {
    let end = index;
    while (values[end + 1] === (values[end] ?? 0) + 1) end++;
    const from = name(values[index] ?? 0) ?? "";
    if (end - index >= 2) {
      parts.push(`${from} to ${name(values[end] ?? 0)}`);
      index = end + 1;
    } else {
      parts.push(from);
      index++;
    }
  }
  return joined(parts);
}

function joined(parts: readonly string[]): string {
  if (parts.length <= 1) return parts.join("");
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

function clockText(hour: number, minute: number, second: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const time = `${two(hour)}:${two(minute)}`;
  return second === 0 ? time : `${time}:${two(second)}`;
}
