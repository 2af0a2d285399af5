// Checks the progress that a handler reports, and merges it with earlier progress. Pure.

import { ConfigurationError, type Problem } from "../../shared/errors.js";
import { storableText } from "../../shared/json.js";
import { refuseUnknownMembers } from "../../shared/suggest.js";

export type ProgressOptions = {
  /** The present stage, in a word or two. A new stage begins without counts. */
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

/** Further stages of an attempt are shown while they last, and not stored. */
export const STAGES_MAX = 100;

const MEMBERS = ["stage", "done", "total"];

export const NO_PROGRESS: Progress = { stage: null, done: null, total: null };

const STAGE_LENGTH_MAX = 200;

/** The name of a stage as it is stored: cut, and without the secrets that this process knows. */
export function keptStage(stage: string): string {
  return storableText(stage, STAGE_LENGTH_MAX);
}

/** Members left out keep their values; a new stage begins without counts. */
export function nextProgress(before: Progress, report: ProgressOptions): Progress {
  const problems: Problem[] =
    typeof report === "object" && report !== null
      ? refuseUnknownMembers(report, MEMBERS, "progress()")
      : [{ field: "progress()", message: 'must be like { stage: "load", done: 3, total: 10 }' }];
  if (problems.length === 0) {
    const { stage, done, total } = report;
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
  const stage = report.stage === undefined ? before.stage : keptStage(report.stage);
  const since = stage === before.stage ? before : NO_PROGRESS;
  return { stage, done: report.done ?? since.done, total: report.total ?? since.total };
}
