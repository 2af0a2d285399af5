// Instants that users give.

import fc from "fast-check";
import { expect, test } from "vitest";
import { readInstant } from "./instant.js";

test.each([
  ["2026-03-08T07:00:00.000Z", "2026-03-08T07:00:00.000Z"],
  ["2026-03-08T07:00Z", "2026-03-08T07:00:00.000Z"],
  ["2026-03-08T07:00:00+05:30", "2026-03-08T01:30:00.000Z"],
  ["2026-03-08", "2026-03-08T00:00:00.000Z"],
  ["2028-02-29", "2028-02-29T00:00:00.000Z"],
])("%s is read as %s", (text, iso) => {
  expect(readInstant(text)).toBe(Date.parse(iso));
});

test.each([
  ["2026-03-08T07:00:00"], // No zone: another instant on another machine.
  ["2026-02-30T00:00:00Z"],
  ["2026-02-29"],
  ["2026-13-01"],
  ["2026-00-10"],
  ["2026-01-00"],
  ["2026-03-08T24:00:00Z"],
  ["2026-03-08T07:60:00Z"],
  ["2026-03-08T07:00:00+99:99"],
  ["08.03.2026"],
  ["tomorrow"],
  [""],
  ["1969-12-31T23:59:59Z"],
  ["+275760-09-13T00:00:00Z"],
  ["2".repeat(100_000)],
  [new Date(Number.NaN)],
  [new Date(8.64e15)],
  [new Proxy(new Date(0), {})],
  [1_772_953_200_000],
  [null],
  [undefined],
])("%o is refused with a right example", (value) => {
  const read = readInstant(value);
  expect(read).toBeTypeOf("string");
  expect(String(read).length).toBeLessThan(300);
});

test("every instant of the supported years comes back from its ISO text and its Date", () => {
  const max = new Date("9999-12-31T23:59:59.999Z");
  fc.assert(
    fc.property(fc.date({ min: new Date(0), max, noInvalidDate: true }), (date) => {
      expect(readInstant(date)).toBe(date.getTime());
      expect(readInstant(date.toISOString())).toBe(date.getTime());
    }),
  );
});
