// What the ticks of a cron schedule ought to be, found the slow and obvious way: walk every minute,
// ask `Intl` what the clock on the wall shows, and compare it with the expression. Written apart from
// the product and shares no code with it, so that a mistake would have to be made twice.

export type OracleDst = {
  readonly gap: "after" | "skip";
  readonly overlap: "first" | "second" | "both";
};

/** A stretch of minutes as the clocks of a zone showed it. */
export type Walk = {
  readonly atMs: readonly number[];
  /** What the clock showed, as if it were UTC. */
  readonly wallMs: readonly number[];
  readonly wasShownBefore: readonly boolean[];
  readonly isShownAgain: readonly boolean[];
  /** Minutes that the clock jumped over just before this one, and never showed. */
  readonly missing: ReadonlyMap<number, readonly number[]>;
};

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

export type WallClock = (atMs: number) => number;

export function wallClock(zone: string): WallClock {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
  });
  return (atMs) => {
    const text = format.format(atMs); // 03/08/2026, 03:00
    const part = (from: number, to: number) => Number(text.slice(from, to));
    return Date.UTC(part(6, 10), part(0, 2) - 1, part(3, 5), part(12, 14), part(15, 17));
  };
}

/** Every instant in the range at which the distance between wall and UTC changes. */
export function changesOf(clock: WallClock, fromMs: number, toMs: number): number[] {
  const changes: number[] = [];
  const distance = (atMs: number) => clock(atMs) - atMs;
  let before = distance(fromMs);
  // No zone changes twice within a week, so it is enough to look by days, then hours, then minutes.
  for (let dayMs = fromMs; dayMs < toMs; dayMs += 24 * HOUR) {
    if (distance(dayMs + 24 * HOUR) === before) continue;
    let atMs = dayMs;
    while (distance(atMs + HOUR) === before) atMs += HOUR;
    while (distance(atMs) === before) atMs += MINUTE;
    changes.push(atMs);
    before = distance(atMs);
  }
  return changes;
}

export function walk(clock: WallClock, fromMs: number, toMs: number): Walk {
  const atMs: number[] = [];
  const wallMs: number[] = [];
  for (let at = fromMs; at < toMs; at += MINUTE) {
    atMs.push(at);
    wallMs.push(clock(at));
  }
  const shown = new Set<number>();
  const wasShownBefore = wallMs.map((wall) => shown.size === shown.add(wall).size);
  const again = new Set<number>();
  const isShownAgain = wallMs
    .toReversed()
    .map((wall) => again.size === again.add(wall).size)
    .reverse();
  const missing = new Map<number, number[]>();
  wallMs.forEach((wall, index) => {
    const previous = wallMs[index - 1] ?? wall;
    const jumped: number[] = [];
    for (let each = previous + MINUTE; each < wall; each += MINUTE) {
      if (!shown.has(each)) jumped.push(each);
    }
    if (jumped.length > 0) missing.set(index, jumped);
  });
  return { atMs, wallMs, wasShownBefore, isShownAgain, missing };
}

/** The minutes of a walk that an expression fits, and the jumps that leave out one that it fits. */
export type Fits = { readonly shown: readonly number[]; readonly jumpedOver: readonly number[] };

export function fitsOf(cron: OracleCron, { wallMs, missing }: Walk): Fits {
  const shown: number[] = [];
  wallMs.forEach((wall, index) => {
    if (cron.fits(wall)) shown.push(index);
  });
  const jumpedOver = [...missing]
    .filter(([, jumped]) => jumped.length <= 180 && jumped.some((wall) => cron.fits(wall)))
    .map(([index]) => index);
  return { shown, jumpedOver };
}

/** The ticks inside the walk. */
export function oracleTicks(
  cron: OracleCron,
  { gap, overlap }: OracleDst,
  walked: Walk,
  { shown, jumpedOver }: Fits,
): number[] {
  const ticks = new Set<number>();
  if (!cron.isWildcard && gap === "after") {
    for (const index of jumpedOver) ticks.add(walked.atMs[index] ?? 0);
  }
  for (const index of shown) {
    if (!cron.isWildcard) {
      if (overlap === "first" && walked.wasShownBefore[index]) continue;
      if (overlap === "second" && walked.isShownAgain[index]) continue;
    }
    for (const second of cron.seconds) ticks.add((walked.atMs[index] ?? 0) + second * 1_000);
  }
  return [...ticks].sort((a, b) => a - b);
}

/** An expression as the oracle understands it. */
export type OracleCron = {
  readonly isWildcard: boolean;
  readonly seconds: readonly number[];
  /** Whether a minute on the wall fits, seconds aside. */
  fits(wallMs: number): boolean;
  /** Whether a date fits, the time of day aside. */
  fitsDate(wallMs: number): boolean;
};

const WORDS: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
};
const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const DAYS = "sun mon tue wed thu fri sat".split(" ");

export function oracleCron(text: string): OracleCron {
  const fields = (WORDS[text] ?? text).split(" ");
  if (fields.length === 5) fields.unshift("0");
  const [second = "", minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  const minutes = numbers(60).map((value) => inList(minute, value, 0, 59));
  const hours = numbers(24).map((value) => inList(hour, value, 0, 23));
  const dates = new Map<number, boolean>();
  const fitsDate = (wallMs: number) => {
    const dateMs = Math.floor(wallMs / (24 * HOUR)) * 24 * HOUR;
    const known = dates.get(dateMs) ?? dateFits(new Date(dateMs), day, month, weekday);
    dates.set(dateMs, known);
    return known;
  };
  return {
    isWildcard: minute.startsWith("*") || hour.startsWith("*"),
    seconds: numbers(60).filter((value) => inList(second, value, 0, 59)),
    fits: (wallMs) =>
      minutes[(wallMs / MINUTE) % 60] === true &&
      hours[Math.floor(wallMs / HOUR) % 24] === true &&
      fitsDate(wallMs),
    fitsDate,
  };
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function dateFits(date: Date, day: string, month: string, weekday: string): boolean {
  const named = MONTHS.reduce(
    (text, name, index) => text.replaceAll(name, String(index + 1)),
    month.toLowerCase(),
  );
  if (!inList(named, date.getUTCMonth() + 1, 1, 12)) return false;
  const byDay = day.split(",").some((item) => dayFits(date, item));
  const days = DAYS.reduce(
    (text, name, index) => text.replaceAll(name, String(index)),
    weekday.toLowerCase(),
  );
  const byWeekday = days.split(",").some((item) => weekdayFits(date, item));
  const isOpen = /^[*?]/.test(day) || /^[*?]/.test(weekday);
  return isOpen ? byDay && byWeekday : byDay || byWeekday;
}

function dayFits(date: Date, item: string): boolean {
  const today = date.getUTCDate();
  const length = monthLength(date);
  if (item === "?") return true;
  if (item === "L") return today === length;
  if (item === "LW") return today === Math.max(...workdays(date));
  if (item.startsWith("L-")) return today === length - Number(item.slice(2));
  if (!item.endsWith("W")) return inList(item, today, 1, 31);
  const wanted = Number.parseInt(item, 10);
  if (wanted > length) return false;
  const distance = (each: number) => Math.abs(each - wanted);
  return workdays(date).every((each) => distance(today) <= distance(each)) && isWorkday(date);
}

function weekdayFits(date: Date, item: string): boolean {
  const weekday = date.getUTCDay();
  const today = date.getUTCDate();
  if (item === "?") return true;
  if (item.includes("#")) {
    const [wanted, nth] = item.split("#").map(Number);
    return weekday === Number(wanted) % 7 && Math.ceil(today / 7) === nth;
  }
  if (item.endsWith("L")) {
    return weekday === Number.parseInt(item, 10) % 7 && today + 7 > monthLength(date);
  }
  if (item.endsWith("l")) return weekdayFits(date, item.toUpperCase());
  const isStar = item.startsWith("*");
  return inList(item, weekday, 0, 6) || (!isStar && weekday === 0 && inList(item, 7, 0, 7));
}

function monthLength(date: Date): number {
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
}

function isWorkday(date: Date): boolean {
  return date.getUTCDay() >= 1 && date.getUTCDay() <= 5;
}

function workdays(date: Date): number[] {
  return numbers(monthLength(date))
    .map((index) => new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), index + 1)))
    .filter(isWorkday)
    .map((each) => each.getUTCDate());
}

/** Whether the value is in a list such as "1,5-9,10/2". */
function inList(list: string, value: number, min: number, max: number): boolean {
  return list.split(",").some((item) => {
    const [range = "", step] = item.split("/");
    const [from, to] = range === "*" ? [min, max] : range.split("-").map(Number);
    const first = from ?? min;
    const last = to ?? (step === undefined ? first : max);
    return value >= first && value <= last && (value - first) % Number(step ?? 1) === 0;
  });
}
