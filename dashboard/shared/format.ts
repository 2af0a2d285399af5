// Formats durations, numbers and ids for people. Pure.

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** Two units at most: "2 h 5 min", "350 ms". */
export function durationText(ms: number): string {
  const whole = Math.abs(ms);
  if (whole < 1_000) return `${Math.round(whole)} ms`;
  if (whole < 10_000) return `${(whole / 1_000).toFixed(1)} s`;
  const first = UNITS.findIndex(([, size]) => whole >= size);
  const [unit, size] = UNITS[first] ?? ["s", 1_000];
  const second = UNITS[first + 1];
  if (second === undefined) return `${Math.round(whole / size)} ${unit}`;
  const major = Math.floor(whole / size);
  const minor = Math.floor((whole % size) / second[1]);
  return minor === 0 || major >= 10 ? `${major} ${unit}` : `${major} ${unit} ${minor} ${second[0]}`;
}

/** "in 5 min", "3 h ago", "now". */
export function relativeText(atMs: number, nowMs: number): string {
  const ms = atMs - nowMs;
  if (Math.abs(ms) < 1_500) return "now";
  const text = coarse(Math.abs(ms));
  return ms > 0 ? `in ${text}` : `${text} ago`;
}

function coarse(ms: number): string {
  if (ms < 60_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 10 * 3_600_000) return durationText(Math.round(ms / 60_000) * 60_000);
  if (ms < 48 * 3_600_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

const NUMBER = new Intl.NumberFormat("en-US");
export function numberText(value: number): string {
  return NUMBER.format(value);
}

export function percentText(share: number): string {
  if (share === 1) return "100 %";
  const percent = share * 100;
  return `${percent >= 99.95 ? "99.9" : percent.toFixed(percent < 10 ? 2 : 1)} %`;
}

/** The end of an id tells runs apart; its beginning is the time that they share. */
export function shortId(id: string): string {
  return id.slice(-8);
}

/** `host:pid:boot-uuid` without most of the uuid. */
export function shortInstance(id: string): string {
  const [host = "", pid = "", boot = ""] = id.split(":");
  return boot === "" ? id : `${host}:${pid}:${boot.slice(-4)}`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${numberText(count)} ${count === 1 ? one : many}`;
}

/** A name from code as people write it: `failureRate` is "failure rate". */
export function spaced(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
