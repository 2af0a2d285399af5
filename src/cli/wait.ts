// `--wait`: waits for the end of a run that was just made, shows it, and answers whether it completed.

import type { Holdfast } from "../holdfast.js";
import type { RunId } from "../runs/rules/run.js";
import { runPage } from "./output/runs.js";
import { EXIT, type Shell } from "./shell.js";

export async function waitForRun(params: {
  readonly holdfast: Holdfast;
  readonly id: RunId;
  /** The document without the run. */
  readonly answer: object;
  readonly timeout: number | undefined;
  readonly shell: Shell;
}): Promise<number> {
  const { holdfast, id, answer, timeout, shell } = params;
  const run = await holdfast.runs.wait(id, timeout === undefined ? {} : { timeout });
  const attempts = await holdfast.runs.attempts(run.id);
  await shell.say(runPage(run, attempts, shell.colours));
  await shell.answer({ ...answer, run: { ...run, attempts } });
  return run.status === "completed" ? EXIT.done : EXIT.no;
}
