// Batches as a page of text for people: how each stands, and why some entries have no child.

import type { Batch } from "../../runs/run-children.js";
import { type Colours, cut, plain } from "../shell.js";
import { newTable } from "./runs.js";

const ERRORS_SHOWN = 10;
const MESSAGE_LENGTH_MAX = 100;

export function batchPage(batches: readonly Batch[], colours: Colours): string {
  const head = ["batch", "scheduled", "refused", "completed", "failed", "cancelled", "then"];
  const table = newTable(head, colours);
  for (const batch of batches) {
    table.push([
      plain(batch.name),
      String(batch.scheduled),
      String(batch.errors.length),
      String(batch.completed),
      String(batch.failed),
      String(batch.cancelled),
      batch.then ?? "",
    ]);
  }
  return [table.toString(), ...batches.flatMap(refusals)].join("\n");
}

function refusals({ name, errors }: Batch): string[] {
  const lines = errors
    .slice(0, ERRORS_SHOWN)
    .map(
      ({ index, code, message }) =>
        `${plain(name)}[${index}]: ${code} ${cut(plain(message), MESSAGE_LENGTH_MAX)}`,
    );
  const rest = errors.length - lines.length;
  return rest > 0 ? [...lines, `${plain(name)}: ${rest} more refused; --json has all`] : lines;
}
