// How far a run is, as its handler tells it: checked, and put together with what it told before. Pure.

import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { storableText } from "../../shared/json.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";

export type ProgressOptions = {
  /** What the handler is doing now, in a word or two. A new one begins with no counts. */
  readonly stage?: string | undefined;
  /** How much of it is done. */
  readonly done?: number | undefined;
  /** How much there is to do. */
  readonly total?: number | undefined;
};

export type Progress = {
  readonly stage: string | null;
  readonly done: number | null;
  readonly total: number | null;
};

/** Later stages of an attempt are shown while they last, and not kept. */
export const STAGES_MAX = 100;

const MEMBERS = ["stage", "done", "total"];

export const NO_PROGRESS: Progress = { stage: null, done: null, total: null };

const STAGE_LENGTH_MAX = 200;

/** The name of a stage as it is stored: cut, and without the secrets that this process knows. */
export function keptStage(stage: string): string {
  return storableText(stage, STAGE_LENGTH_MAX);
}

/** What is left out stays as it was; a new stage begins anew. */
export function nextProgress(before: Progress, told: ProgressOptions): Progress {
  const problems: Problem[] =
    typeof told === "object" && told !== null
      ? refuseUnknownMembers(told, MEMBERS, "progress()")
      : [{ field: "progress()", message: 'must be like { stage: "load", done: 3, total: 10 }' }];
  if (problems.length === 0) {
    const { stage, done, total } = told;
    if (stage !== undefined && (typeof stage !== "string" || stage === ""))
      problems.push({ field: "progress().stage", message: 'must be a text, for example "load"' });
    for (const [member, value] of Object.entries({ done, total })) {
      if (value === undefined || (Number.isFinite(value) && value >= 0)) continue;
      problems.push({
        field: `progress().${member}`,
        message: "must be a number from 0, for example 42",
      });
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  const stage = told.stage === undefined ? before.stage : keptStage(told.stage);
  const since = stage === before.stage ? before : NO_PROGRESS;
  return { stage, done: told.done ?? since.done, total: told.total ?? since.total };
}
