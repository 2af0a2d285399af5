// Lines from chunks that end anywhere.

import fc from "fast-check";
import { expect, test } from "vitest";
import { LastLines, OutputLines } from "./output-lines.js";

const bytes = (text: string) => new TextEncoder().encode(text);

test("lines are the same wherever the chunks end, also inside a character", () => {
  const text = "one\nzwölf ü €\r\n\n🙂 four";
  fc.assert(
    fc.property(fc.array(fc.nat(40)), (cuts) => {
      const all = bytes(text);
      const at = [...new Set([0, ...cuts, all.length])].sort((a, b) => a - b);
      const lines = new OutputLines();
      const found = at.flatMap((from, index) => lines.feed(all.slice(from, at[index + 1])));
      expect([...found, ...lines.end()]).toEqual(["one", "zwölf ü €", "", "🙂 four"]);
    }),
  );
});

test("output without an end of line comes in pieces", () => {
  const lines = new OutputLines();
  const found = lines.feed(bytes("x".repeat(10_000)));
  expect(found.map((line) => line.length)).toEqual([4_000, 4_000]);
  expect(lines.end().map((line) => line.length)).toEqual([2_000]);
});

test("bytes that are no text are distinguished from text", () => {
  const lines = new OutputLines();
  expect(lines.feed(new Uint8Array([0xff, 0x0a, 0x61, 0x0a]))).toEqual(["\uFFFD", "a"]);
});

test("the last lines are kept, empty ones left out", () => {
  const last = new LastLines(2);
  for (const line of ["a", "", "b", "  ", "c"]) last.add(line);
  expect(last.text).toBe("b\nc");
});
