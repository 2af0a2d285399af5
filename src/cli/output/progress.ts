// How far a run is, for people: a bar where the end is known, and the stages with their times.

import type { RunProgress } from "../../runs/run-records.js";
import { plain } from "../shell.js";
import { shortTime } from "./times.js";

const BAR_WIDTH = 20;

/** sort [#####---------------] 25 of 100 (25 %) */
export function progressText({ stage, done, total }: RunProgress): string {
  const parts = stage === null ? [] : [plain(stage)];
  if (done !== null && total !== null && total > 0) {
    const part = Math.min(1, done / total);
    const full = Math.floor(part * BAR_WIDTH);
    parts.push(`[${"#".repeat(full)}${"-".repeat(BAR_WIDTH - full)}]`);
    parts.push(`${done} of ${total} (${Math.floor(part * 100)} %)`);
  } else if (done !== null) parts.push(String(done));
  else if (total !== null) parts.push(`of ${total}`);
  return parts.join(" ");
}

export function stagesText({ stages }: RunProgress): string | null {
  if (stages.length === 0) return null;
  return stages.map(({ stage, at }) => `${plain(stage)} (${shortTime(at)})`).join(", ");
}
