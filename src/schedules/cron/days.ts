// Finds the days of a cron expression. Only fourteen kinds of years exist (leap or not, by the weekday of January 1st), so
// the days are a table of 14 × 12 bit masks, filled on first use, and finding the next day is a few bit operations.

/** Two years of one kind are at most 40 years apart (leap years around 2100). */
const YEARS_MAX = 41;
const YEAR_KINDS = 14;

/** Counts the steps of a search, to bound them. */
export type Work = { steps: number };

/** A set of small numbers: bit n of `low` for 0 … 31, bit n − 32 of `high` for 32 … 63. */
export type BitSet = { readonly low: number; readonly high: number };

/** Days that depend on the month: `L`, `L-3`, `LW`, `15W`, `5#3`, `5L`. */
export type SpecialDay =
  | { readonly kind: "last"; readonly before: number }
  | { readonly kind: "last weekday" }
  | { readonly kind: "nearest weekday"; readonly day: number }
  | { readonly kind: "nth"; readonly weekday: number; readonly nth: number }
  | { readonly kind: "last of weekday"; readonly weekday: number };

export type Field = {
  readonly text: string;
  readonly values: BitSet;
  readonly special: readonly SpecialDay[];
  /** Begins with `*` or `?`. */
  readonly isOpen: boolean;
};

export function hasValue({ low, high }: BitSet, value: number): boolean {
  return ((value < 32 ? low >>> value : high >>> (value - 32)) & 1) === 1;
}

export type DayFields = { readonly day: Field; readonly month: Field; readonly weekday: Field };

/** Masks of one kind of year: for each month its days as bits, and the months that have any. */
type YearMasks = { readonly months: number; readonly days: Int32Array };

export class CronDays {
  readonly #fields: DayFields;
  readonly #masks: (YearMasks | undefined)[] = new Array(YEAR_KINDS).fill(undefined);

  constructor(fields: DayFields) {
    this.#fields = fields;
  }

  /** Whether any day of any year fits. */
  get isPossible(): boolean {
    for (let kind = 0; kind < YEAR_KINDS; kind++) if (this.#year(kind).months !== 0) return true;
    return false;
  }

  /** The first fitting day at or after `fromDay`, both counted from 1970-01-01. */
  next(fromDay: number, work: Work): number {
    const [fromYear, month, day] = civilOf(fromDay);
    let year = fromYear;
    let { months, days } = this.#year(kindOf(year));
    const rest = (days[month] ?? 0) & (-1 << day);
    if (rest !== 0) return fromDay - day + lowestBit(rest);
    months &= -2 << month;
    for (let tried = 0; tried <= YEARS_MAX; tried++) {
      work.steps++;
      if (months !== 0) {
        const found = lowestBit(months);
        return dayOf(year, found, lowestBit(days[found] ?? 0));
      }
      year++;
      ({ months, days } = this.#year(kindOf(year)));
    }
    return Number.POSITIVE_INFINITY;
  }

  #year(kind: number): YearMasks {
    const known = this.#masks[kind];
    if (known) return known;
    const masks = yearMasks(this.#fields, kind);
    this.#masks[kind] = masks;
    return masks;
  }
}

function yearMasks(fields: DayFields, kind: number): YearMasks {
  const days = new Int32Array(13);
  let months = 0;
  let firstWeekday = kind % 7;
  for (let month = 1; month <= 12; month++) {
    const length = month === 2 && kind >= 7 ? 29 : (LENGTHS[month] ?? 0);
    const mask = hasValue(fields.month.values, month) ? monthMask(fields, firstWeekday, length) : 0;
    days[month] = mask;
    if (mask !== 0) months |= 1 << month;
    firstWeekday = (firstWeekday + length) % 7;
  }
  return { months, days };
}

const LENGTHS = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** If both fields are restricted, either may fit; otherwise both must, so that a step of a star counts. */
function monthMask({ day, weekday }: DayFields, firstWeekday: number, length: number): number {
  let byDay = day.values.low;
  let byWeekday = 0;
  for (let date = 1; date <= length; date++) {
    if (hasValue(weekday.values, (firstWeekday + date - 1) % 7)) byWeekday |= 1 << date;
  }
  const month = { firstWeekday, length };
  for (const special of day.special) byDay |= bitOf(special, month);
  for (const special of weekday.special) byWeekday |= bitOf(special, month);
  const isEither = !day.isOpen && !weekday.isOpen;
  // Bits 1 … length; not 1 << (length + 1), as 1 << 32 is 1.
  const whole = (-1 >>> (31 - length)) & -2;
  return (isEither ? byDay | byWeekday : byDay & byWeekday) & whole;
}

type Month = { readonly firstWeekday: number; readonly length: number };

function bitOf(special: SpecialDay, month: Month): number {
  const date = dateOf(special, month);
  return date >= 1 && date <= month.length ? 1 << date : 0;
}

function dateOf(special: SpecialDay, { firstWeekday, length }: Month): number {
  const weekdayOf = (date: number) => (firstWeekday + date - 1) % 7;
  switch (special.kind) {
    case "last":
      return length - special.before;
    case "last weekday":
      return length - ([2, 0, 0, 0, 0, 0, 1][weekdayOf(length)] ?? 0);
    case "nearest weekday": {
      const { day } = special;
      if (day > length) return 0;
      const weekday = weekdayOf(day);
      // Never leaves the month: the 1st on a Saturday becomes Monday the 3rd.
      if (weekday === 6) return day === 1 ? 3 : day - 1;
      if (weekday === 0) return day === length ? day - 2 : day + 1;
      return day;
    }
    case "nth":
      return 1 + ((special.weekday - firstWeekday + 7) % 7) + (special.nth - 1) * 7;
    case "last of weekday":
      return length - ((weekdayOf(length) - special.weekday + 7) % 7);
  }
}

function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

/** Weekday of January 1st, plus 7 in leap years. */
function kindOf(year: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  // 1970-01-01 was a Thursday.
  const weekday = (((dayOf(year, 1, 1) + 4) % 7) + 7) % 7;
  return isLeap ? weekday + 7 : weekday;
}

// Calendar arithmetic on years that begin in March, so that the leap day is the last of its year
// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
const CYCLE_DAYS = 146_097;
const MARCH_0000 = 719_468;

function dayOf(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const cycle = Math.floor(marchYear / 400);
  const inCycle = marchYear - cycle * 400;
  const inYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const days = inCycle * 365 + Math.floor(inCycle / 4) - Math.floor(inCycle / 100) + inYear;
  return cycle * CYCLE_DAYS + days - MARCH_0000;
}

function civilOf(days: number): [year: number, month: number, day: number] {
  const shifted = days + MARCH_0000;
  const cycle = Math.floor(shifted / CYCLE_DAYS);
  const inCycle = shifted - cycle * CYCLE_DAYS;
  const years = Math.floor(
    (inCycle -
      Math.floor(inCycle / 1_460) +
      Math.floor(inCycle / 36_524) -
      Math.floor(inCycle / 146_096)) /
      365,
  );
  const inYear = inCycle - (365 * years + Math.floor(years / 4) - Math.floor(years / 100));
  const fromMarch = Math.floor((5 * inYear + 2) / 153);
  const day = inYear - Math.floor((153 * fromMarch + 2) / 5) + 1;
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  return [years + cycle * 400 + (month <= 2 ? 1 : 0), month, day];
}
