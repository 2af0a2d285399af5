// The bar of long work, on a terminal that only remembers what was written.

import { expect, test } from "vitest";
import type { Shell } from "../shell.js";
import { ProgressBar } from "./progress-bar.js";

function scene(params: { isTTY: boolean; isJson?: boolean; columns?: number }) {
  const written: string[] = [];
  let nowMs = 1_000;
  const shell = {
    isJson: params.isJson ?? false,
    complain: (text: string) => written.push(`! ${text}\n`),
  } as unknown as Shell;
  const terminal = {
    isTTY: params.isTTY,
    columns: params.columns ?? 100,
    write: (text: string) => written.push(text),
  };
  const bar = new ProgressBar({ shell, terminal, nowMs: () => nowMs });
  return {
    bar,
    written,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

const seeds = (done: number, total: number | null = 40) => ({
  done,
  total,
  text: `${done} of ${total ?? "?"} seeds`,
});

test("on a terminal one line is drawn again and again, and taken away at the end", () => {
  const { bar, written, pass } = scene({ isTTY: true });
  bar.show(seeds(0));
  pass(500);
  bar.show(seeds(10));
  bar.end();
  expect(written).toEqual([
    `\r\u001b[K[${"-".repeat(30)}]   0% 0 of 40 seeds`,
    `\r\u001b[K[${"#".repeat(7)}${"-".repeat(23)}]  25% 10 of 40 seeds`,
    "\r\u001b[K",
  ]);
});

test("news that come faster than anybody can read are left out, the last one never", () => {
  const { bar, written, pass } = scene({ isTTY: true });
  for (let done = 0; done <= 40; done += 1) {
    bar.show(seeds(done));
    pass(1);
  }
  expect(written).toHaveLength(2);
  expect(written.at(-1)).toMatch(/\[#{30}\] 100% 40 of 40 seeds$/);
});

test("the time that is left is guessed once there is something to guess from", () => {
  const { bar, written, pass } = scene({ isTTY: true });
  bar.show(seeds(0));
  pass(1_000);
  bar.show(seeds(5));
  pass(9_000);
  bar.show(seeds(10));
  expect(written[1]).toMatch(/5 of 40 seeds$/);
  expect(written[2]).toMatch(/10 of 40 seeds, about 30 s left$/);
});

test("the estimate of resumed work counts only the work of this call", () => {
  const { bar, written, pass } = scene({ isTTY: true });
  bar.show(seeds(30));
  pass(10_000);
  bar.show(seeds(35));
  expect(written.at(-1)).toMatch(/about 10 s left$/);
});

test("there is no estimate if the total is unknown", () => {
  const { bar, written, pass } = scene({ isTTY: true });
  bar.show(seeds(1, null));
  pass(60_000);
  bar.show(seeds(2, null));
  expect(written.at(-1)).toMatch(/\[-{30}\] {6}2 of \? seeds$/);
});

test("a line never wraps", () => {
  const { bar, written } = scene({ isTTY: true, columns: 30 });
  bar.show(seeds(10));
  expect(written[0]?.replace("\r\u001b[K", "")).toHaveLength(29);
});

test("a complaint stands above the bar", () => {
  const { bar, written } = scene({ isTTY: true });
  bar.show(seeds(1));
  bar.complain("the database went away");
  bar.show(seeds(1));
  expect(written.slice(1, 3)).toEqual(["\r\u001b[K", "! the database went away\n"]);
  expect(written[3]).toMatch(/1 of 40 seeds$/);
});

test("without a terminal there is a line now and then, and one at the end", () => {
  const { bar, written, pass } = scene({ isTTY: false });
  for (let done = 0; done <= 40; done += 1) {
    bar.show(seeds(done));
    pass(1_000);
  }
  bar.end();
  expect(written).toEqual([
    "10 of 40 seeds, about 30 s left\n",
    "20 of 40 seeds, about 20 s left\n",
    "30 of 40 seeds, about 10 s left\n",
    "40 of 40 seeds\n",
  ]);
});

test("work that is soon done leaves no lines where there is no terminal", () => {
  const { bar, written, pass } = scene({ isTTY: false });
  for (let done = 0; done <= 40; done += 1) {
    bar.show(seeds(done));
    pass(100);
  }
  expect(written).toEqual([]);
});

test("programs see nothing of it", () => {
  const { bar, written } = scene({ isTTY: true, isJson: true });
  bar.show(seeds(1));
  bar.end();
  expect(written).toEqual([]);
});
