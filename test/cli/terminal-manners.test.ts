// Tests the program on a terminal and in a pipe: drawing and clearing, and a reader that closes the pipe early.

import { spawn, spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/until.js";
import { configText, ECHO_JOB, openTerminal, PROGRAM, type Terminal } from "./terminal.js";

let terminal: Terminal;
beforeAll(async () => {
  terminal = openTerminal();
  terminal.write({ "holdfast.config.mjs": configText(ECHO_JOB) });
  for (let at = 0; at < 3; at += 1)
    expect(await terminal.holdfast(["enqueue", "echo", `{"at":${at}}`])).toMatchObject({ code: 0 });
});
afterAll(() => terminal.close());

/** `script` of util-linux gives a program a terminal of its own. */
const hasTerminals = /util-linux/.test(spawnSync("script", ["--version"]).stdout?.toString() ?? "");

function onTerminal(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const command = [process.execPath, PROGRAM, ...args].join(" ");
  const child = spawn("script", ["-qefc", command, "/dev/null"], {
    cwd: terminal.folder,
    env: { ...process.env, TERM: "xterm", NO_COLOR: "1", ...env },
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, ended, text: () => text };
}

test.runIf(hasTerminals)("top takes the terminal, and q gives it back", async () => {
  const session = onTerminal(["top", "--watch", "200ms"]);
  await until("it is drawn twice", () => session.text().split("holdfast top").length > 2);
  session.child.stdin.write("q");
  expect(await session.ended).toBe(0);
  const text = session.text();
  expect(text.startsWith("\u001b[?1049h\u001b[?25l")).toBe(true);
  expect(text.endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
  expect(text).toContain("0 running, 3 ready, 0 waiting");
  // Drawn over, never cleared: that would flicker.
  expect(text.split("\u001b[2J")).toHaveLength(2);
});

test.runIf(hasTerminals)("Ctrl-C leaves top in good order too", async () => {
  const session = onTerminal(["top"]);
  await until("it is drawn", () => session.text().includes("q quits"));
  session.child.stdin.write("\u0003");
  expect(await session.ended).toBe(0);
  expect(session.text().endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
});

test.runIf(hasTerminals)("a dumb terminal gets top once, in plain lines", async () => {
  const session = onTerminal(["top"], { TERM: "dumb" });
  expect(await session.ended).toBe(0);
  expect(session.text()).toMatch(/^holdfast top .*Last failures/s);
  expect(session.text()).not.toContain("\u001b");
});

test.runIf(hasTerminals)("long work draws a bar, and takes it away", async () => {
  const session = onTerminal(["simulate", "--seeds", "2"]);
  expect(await session.ended).toBe(0);
  const [, last = ""] = session.text().split(`[${"#".repeat(30)}] 100% 2 of 2 seeds`);
  expect(last).toMatch(/^[^\n]*Seeds 1 to 2/);
  expect(last).toContain("\r\u001b[KSeeds 1 to 2");
});

test("top in a pipe is printed once", async () => {
  const { code, stdout, stderr } = await terminal.holdfast(["top"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.match(/^holdfast top/gm)).toHaveLength(1);
  expect(stdout).not.toContain("\u001b");
});

test.each([["runs list --watch 20ms"], ["top --watch 200ms"], ["runs list"]])(
  "%s | head -1 ends quietly",
  async (command) => {
    const script = `"${process.execPath}" "${PROGRAM}" ${command} 2>errors.txt | head -1; cat errors.txt`;
    const child = spawn("sh", ["-c", script], { cwd: terminal.folder });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    await new Promise((resolve) => child.once("close", resolve));
    expect(text.trim().split("\n")).toHaveLength(1);
    expect(text).toMatch(/^(id|holdfast top)/);
  },
);
