// `top` on a terminal that only remembers what was written, and with a keyboard that the test presses.

import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { shareRows } from "../output/top.js";
import { live } from "./top.js";

const ENTER = "\u001b[?1049h";
const LEAVE = "\u001b[?25h\u001b[?1049l";

function scene() {
  const written: string[] = [];
  const modes: boolean[] = [];
  let onDrawn: () => void = () => undefined;
  const terminal = Object.assign(new EventEmitter(), {
    isTTY: true,
    columns: 40,
    rows: 20,
    write(text: string) {
      written.push(text);
      onDrawn();
    },
  });
  const keyboard = Object.assign(new EventEmitter(), {
    isTTY: true,
    setRawMode: (isRaw: boolean) => modes.push(isRaw),
    resume: () => undefined,
    pause: () => undefined,
  });
  return {
    written,
    modes,
    terminal,
    keyboard,
    /** What is done each time that something was drawn. */
    whenDrawn(act: () => void) {
      onDrawn = act;
    },
  };
}

const stop = () => new AbortController();

test.each([
  ["q", "q"],
  ["Ctrl-C", "\u0003"],
])("%s leaves the terminal as it was", async (_, key) => {
  const { terminal, keyboard, written, modes, whenDrawn } = scene();
  whenDrawn(() => keyboard.emit("data", Buffer.from(key)));
  await live({
    terminal,
    keyboard,
    everyMs: 60_000,
    signal: stop().signal,
    observe: async () => "all is well",
    page: (look) => look,
  });
  expect(written[0]?.startsWith(ENTER)).toBe(true);
  expect(written[0]).toContain("all is well");
  expect(written.at(-1)).toBe(LEAVE);
  expect(modes).toEqual([true, false]);
  expect(terminal.listenerCount("resize") + keyboard.listenerCount("data")).toBe(0);
});

test("a signal leaves it as well", async () => {
  const { terminal, keyboard, written, whenDrawn } = scene();
  const told = stop();
  whenDrawn(() => told.abort());
  const page = (look: string) => look;
  await live({
    terminal,
    keyboard,
    everyMs: 60_000,
    signal: told.signal,
    observe: async () => "x",
    page,
  });
  expect(written.at(-1)).toBe(LEAVE);
});

test("another size is drawn at once, without another look", async () => {
  const { terminal, keyboard, written, whenDrawn } = scene();
  let looks = 0;
  let drawn = 0;
  whenDrawn(() => {
    drawn += 1;
    if (drawn === 1) {
      terminal.rows = 3;
      terminal.emit("resize");
    } else if (written.at(-1)?.includes("one")) keyboard.emit("data", Buffer.from("q"));
  });
  await live({
    terminal,
    keyboard,
    everyMs: 60_000,
    signal: stop().signal,
    observe: async () => {
      looks += 1;
      return "one\ntwo\nthree";
    },
    page: (look) => look,
  });
  expect(looks).toBe(1);
  expect(written[0]).toContain("three");
  expect(written[2]).toContain("two");
  expect(written[2]).not.toContain("three");
});

test("an unreachable database is reported, and the last page stays", async () => {
  const { terminal, keyboard, written, whenDrawn } = scene();
  let looks = 0;
  whenDrawn(() => {
    if (written.length === 3) keyboard.emit("data", Buffer.from("q"));
  });
  await live({
    terminal,
    keyboard,
    everyMs: 1,
    signal: stop().signal,
    observe: async () => {
      looks += 1;
      if (looks === 2) throw Object.assign(new Error("gone"), { code: "STORE_UNAVAILABLE" });
      return `look ${looks}`;
    },
    page: (look, trouble) => `${look}, ${trouble ?? "fine"}`,
  });
  expect(written[0]).toContain("look 1, fine");
  expect(written[1]).toContain("look 1, gone");
  expect(written[2]).toContain("look 3, fine");
});

test("a first look that fails takes nothing from the terminal", async () => {
  const { terminal, keyboard, written, modes } = scene();
  const observe = async (): Promise<string> => {
    throw new Error("no database");
  };
  const page = (text: string) => text;
  await expect(
    live({ terminal, keyboard, everyMs: 1, signal: stop().signal, observe, page }),
  ).rejects.toThrow("no database");
  expect({ written, modes }).toEqual({ written: [], modes: [] });
});

test("rows are shared: no section gets more than it needs, every section gets at least one", () => {
  expect(shareRows([1, 50, 2], 13)).toEqual([1, 10, 2]);
  expect(shareRows([5, 5, 5], 6)).toEqual([2, 2, 2]);
  expect(shareRows([5, 5], 0)).toEqual([1, 1]);
  expect(shareRows([3, 30], null)).toEqual([3, 10]);
});
