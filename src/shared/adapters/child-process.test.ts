// Real programs: their output, their end, and that nothing of them is left.

import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { until } from "../../../test/support/until.js";
import { runProgram, type Stream } from "./child-process.js";

type Ended = Awaited<ReturnType<typeof run>>;

async function run(
  script: string,
  options: {
    readonly timeoutMs?: number;
    readonly graceMs?: number;
    readonly signal?: AbortSignal;
    readonly onText?: (text: string) => void;
  } = {},
) {
  const text = { stdout: "", stderr: "" };
  const ended = await runProgram({
    file: "/bin/sh",
    args: ["-c", script],
    signal: options.signal ?? new AbortController().signal,
    graceMs: options.graceMs ?? 10_000,
    timeoutMs: options.timeoutMs ?? null,
    onOutput(stream: Stream, chunk) {
      text[stream] += Buffer.from(chunk).toString();
      options.onText?.(text.stdout);
    },
  });
  return { ...ended, ...text };
}

function stateOf(pid: number): string {
  return spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).stdout.trim();
}

const facts = ({ durationMs: _, ...rest }: Ended) => rest;

test("output and exit code are the program's", async () => {
  expect(facts(await run("echo out; echo err >&2; exit 7"))).toEqual({
    exitCode: 7,
    signal: null,
    endedBy: "itself",
    stdout: "out\n",
    stderr: "err\n",
  });
});

test("a program past its time limit gets SIGTERM, and time to clean up", async () => {
  const ended = await run('trap "echo tidy; exit 5" TERM; while :; do sleep 0.05; done', {
    timeoutMs: 200,
  });
  expect(facts(ended)).toMatchObject({ exitCode: 5, endedBy: "timeout", stdout: "tidy\n" });
});

test("one that does not listen is killed, with all that it started", async () => {
  const stop = new AbortController();
  const ended = await run(
    'trap "" TERM; sh -c \'trap "" TERM; sleep 60\' & echo $!; wait; sleep 60',
    {
      signal: stop.signal,
      graceMs: 200,
      onText: (text) => text.endsWith("\n") && stop.abort(),
    },
  );
  expect(facts(ended)).toMatchObject({ exitCode: null, signal: "SIGKILL", endedBy: "abort" });
  const child = Number(ended.stdout.trim());
  // Gone, or dead and waiting for somebody to take note of it.
  await until("the grandchild is dead", () => /^(Z.*)?$/.test(stateOf(child)));
});

test("processes that a program leaves behind do not delay the notice of its end", async () => {
  const ended = await run("sleep 30 & echo done");
  expect(facts(ended)).toMatchObject({ exitCode: 0, stdout: "done\n" });
});

test("a program that does not exist is named by the code of the system", async () => {
  await expect(
    runProgram({
      file: "/no/such/program",
      args: [],
      signal: new AbortController().signal,
      graceMs: 0,
      timeoutMs: null,
      onOutput: () => undefined,
    }),
  ).rejects.toMatchObject({ code: "ENOENT" });
});
