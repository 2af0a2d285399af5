// Tables of time zones.

import fc from "fast-check";
import { expect, test } from "vitest";
import { ConfigurationError } from "../../shared/errors.js";
import { isNewerTzdata, requireZone, UTC, Zone } from "./zone.js";

const HOUR = 3_600_000;
const at = (iso: string) => Date.parse(`${iso}Z`);

test.each([
  ["America/New_York", "2026-03-08T06:59:59", -5],
  ["America/New_York", "2026-03-08T07:00:00", -4],
  ["America/New_York", "2026-11-01T06:00:00", -5],
  ["America/New_York", "1974-01-06T07:00:00", -4],
  ["Asia/Kathmandu", "2026-01-01T00:00:00", 5.75],
  ["Australia/Lord_Howe", "2026-10-04T00:00:00", 11],
  ["Pacific/Apia", "2011-12-30T09:59:59", -10],
  ["Pacific/Apia", "2011-12-30T10:00:00", 14],
  ["Africa/Monrovia", "1970-01-01T00:00:00", -0.741_666_666_666_666_7],
  ["Etc/GMT+5", "2026-01-01T00:00:00", -5],
  ["UTC", "2026-01-01T00:00:00", 0],
])("%s at %s is %d hours from UTC", (name, iso, hours) => {
  expect(requireZone(name, "timezone").offsetAt(at(iso))).toBe(Math.round(hours * HOUR));
});

test("the order of questions does not change the results", () => {
  const instants = ["2026-07-01", "1990-07-01", "2039-07-01", "9000-07-01", "2026-07-01"];
  const zone = new Zone("test", newYorkLike);
  for (const day of instants) expect(zone.offsetAt(at(`${day}T00:00:00`))).toBe(-4 * HOUR);
  for (const day of instants)
    expect(zone.offsetAt(at(`${day}T00:00:00`) + 200 * 24 * HOUR)).toBe(-5 * HOUR);
});

test("a far year does not fill in the years before it", () => {
  let readCount = 0;
  const zone = new Zone("test", (ms) => {
    readCount++;
    return newYorkLike(ms);
  });
  zone.offsetAt(at("2026-01-01T00:00:00"));
  zone.offsetAt(at("9990-01-01T00:00:00"));
  expect(readCount).toBeLessThan(6_000);
});

/** Summer time in the months April to October. */
function newYorkLike(ms: number): number {
  const month = new Date(ms).getUTCMonth();
  return (month >= 3 && month <= 9 ? -4 : -5) * HOUR;
}

test("a table looked up in any order equals the offsets it was read from", () => {
  const instant = fc.integer({ min: 0, max: at("2060-01-01T00:00:00") / 1_000 });
  fc.assert(
    fc.property(fc.array(instant, { minLength: 1, maxLength: 8 }), (seconds) => {
      const zone = new Zone("test", newYorkLike);
      for (const each of seconds)
        expect(zone.offsetAt(each * 1_000)).toBe(newYorkLike(each * 1_000));
    }),
    { numRuns: 30 },
  );
});

test("stretches join without holes", () => {
  const zone = requireZone("Africa/Casablanca", "timezone");
  zone.cover(at("2036-01-01T00:00:00"));
  let stretch = zone.stretchAt(at("1990-01-01T00:00:00"));
  let count = 0;
  while (stretch.next) {
    expect(stretch.next.startMs).toBe(stretch.endMs);
    expect(stretch.next.previous).toBe(stretch);
    expect(stretch.next.offsetMs).not.toBe(stretch.offsetMs);
    stretch = stretch.next;
    count++;
  }
  expect(count).toBeGreaterThan(50);
});

test("local times are found once, twice or not at all", () => {
  const zone = requireZone("America/New_York", "timezone");
  expect(zone.fromLocal(at("2026-03-08T01:59:59"))).toEqual({
    kind: "once",
    atMs: at("2026-03-08T06:59:59"),
  });
  expect(zone.fromLocal(at("2026-03-08T02:30:00"))).toEqual({
    kind: "gap",
    endMs: at("2026-03-08T07:00:00"),
    gapMs: HOUR,
  });
  expect(zone.fromLocal(at("2026-11-01T01:30:00"))).toEqual({
    kind: "overlap",
    firstMs: at("2026-11-01T05:30:00"),
    secondMs: at("2026-11-01T06:30:00"),
  });
  expect(requireZone("Pacific/Apia", "timezone").fromLocal(at("2011-12-30T12:00:00"))).toEqual({
    kind: "gap",
    endMs: at("2011-12-30T10:00:00"),
    gapMs: 24 * HOUR,
  });
  expect(UTC.fromLocal(0)).toEqual({ kind: "once", atMs: 0 });
});

test("a zone is known by any spelling; an alias keeps its name; none is UTC", () => {
  expect(requireZone("europe/PARIS", "timezone").name).toBe("Europe/Paris");
  expect(requireZone("Asia/Kolkata", "timezone").name).toBe("Asia/Kolkata");
  expect(requireZone("US/Eastern", "timezone").offsetAt(0)).toBe(-5 * HOUR);
  expect(requireZone("Europe/Paris", "a")).toBe(requireZone("europe/paris", "b"));
  expect(requireZone(undefined, "timezone")).toBe(UTC);
  expect(requireZone("utc", "timezone")).toBe(UTC);
});

test.each([
  ["", /timezone: .*"Europe\/Paris".*empty string/],
  [" ", /is unknown/],
  ["Europe/Pari", /Did you mean "Europe\/Paris"\?/],
  ["Europe/Paris ", /is unknown/],
  ["+02:00", /is unknown/],
  ["local", /is unknown/],
  ["x".repeat(100_000), /is unknown/],
  ["__proto__", /is unknown/],
  [null, /but is null/],
  [5, /but is number/],
])("%o is no zone", (value, message) => {
  const take = () => requireZone(value, "timezone");
  expect(take).toThrow(ConfigurationError);
  expect(take).toThrow(message);
});

test("only newer rules are newer", () => {
  expect(isNewerTzdata({ runtime: "2026a", stored: "2025c" })).toBe(true);
  expect(isNewerTzdata({ runtime: "2025c", stored: "2025c" })).toBe(false);
  expect(isNewerTzdata({ runtime: "2025b", stored: "2025c" })).toBe(false);
  expect(isNewerTzdata({ runtime: undefined, stored: "2025c" })).toBe(false);
  expect(isNewerTzdata({ runtime: "2025c", stored: undefined })).toBe(true);
});
