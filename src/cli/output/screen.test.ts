// Drawing page over page, on a terminal that only remembers what was written.

import { expect, test } from "vitest";
import { cutToWidth, Screen } from "./screen.js";

function scene(size: { columns: number; rows: number }, isFullScreen = true) {
  const written: string[] = [];
  const terminal = { isTTY: true, ...size, write: (text: string) => written.push(text) };
  return { screen: new Screen(terminal, { isFullScreen }), terminal, written };
}

test("a page is drawn over the one before in one write, and clears nothing first", () => {
  const { screen, written } = scene({ columns: 20, rows: 10 });
  screen.draw("one\ntwo");
  screen.draw("three");
  expect(written[0]?.startsWith("\u001b[?1049h\u001b[?25l\u001b[2J\u001b[H")).toBe(true);
  expect(written.slice(1)).toEqual(["\u001b[Hthree\u001b[K\n\u001b[J"]);
});

test("the terminal is given back once, and only if it was taken", () => {
  const { screen, written } = scene({ columns: 20, rows: 10 });
  screen.leave();
  expect(written).toEqual([]);
  screen.draw("one");
  screen.leave();
  screen.leave();
  expect(written.slice(1)).toEqual(["\u001b[?25h\u001b[?1049l"]);
});

test("lines beyond the screen are cut, so that nothing scrolls; a larger terminal shows more", () => {
  const { screen, terminal, written } = scene({ columns: 4, rows: 3 });
  screen.draw("a\nb\nc\nlonger");
  expect(written.at(-1)).toContain("a\u001b[K\nb\u001b[K\n\u001b[J");
  Object.assign(terminal, { columns: 40, rows: 30 });
  screen.resized();
  screen.draw("a\nb\nc\nlonger");
  expect(written.at(-1)).toContain("longer");
});

test("a cut line keeps its colours and ends them", () => {
  expect(cutToWidth("\u001b[31mfailed\u001b[39m run", 5)).toBe(
    "\u001b[31mfail\u001b[39m\u001b[0m…",
  );
  expect(cutToWidth("short", 5)).toBe("short");
  expect(cutToWidth("anything", undefined)).toBe("anything");
});
