// The buttons for the selected runs.

import { call } from "../api/call.js";
import type { Run } from "../api/wire.js";
import { ActionButton } from "../shared/action.js";
import { Button } from "../shared/button.js";
import { plural } from "../shared/format.js";

const AT_ONCE = 1_000;

export function ChosenBar(props: {
  readonly runs: readonly Run[];
  readonly all: () => void;
  readonly clear: () => void;
}) {
  const { runs, all, clear } = props;
  const live = runs.filter(({ status }) => status === "pending" || status === "running");
  const failed = runs.filter(({ status }) => status === "failed" || status === "cancelled");
  return (
    <div className="sticky bottom-3 z-30 mt-3 flex flex-wrap items-center gap-2 rounded-lg border border-line bg-surface px-4 py-2.5 shadow-xl">
      <span className="mr-2 font-medium">{plural(runs.length, "run")} chosen</span>
      <ActionButton
        label={`Cancel ${live.length}`}
        kind="danger"
        isDisabled={live.length === 0}
        confirm={{
          title: `Cancel ${plural(live.length, "run")}?`,
          summary: `${summaryOf(live)} Waiting runs never start. The signal of active runs aborts; their effects stay. You can retry a cancelled run.`,
          verb: "Cancel them",
          isDangerous: true,
        }}
        act={async () => {
          const answers = await inParts(live, (ids) =>
            call("cancelRuns", "POST /api/runs/cancel", { body: { ids } }),
          );
          return summarize(answers, "cancelled or stopping");
        }}
        onDone={clear}
      />
      <ActionButton
        label={`Retry ${failed.length}`}
        isDisabled={failed.length === 0}
        confirm={{
          title: `Retry ${plural(failed.length, "run")}?`,
          summary: `${summaryOf(failed)} Each gets one attempt more; items that were done are not done again.`,
          verb: "Retry them",
        }}
        act={async () => {
          const answers = await inParts(failed, (ids) =>
            call("retryRuns", "POST /api/runs/retry", { body: { ids } }),
          );
          return summarize(answers, "will be retried");
        }}
        onDone={clear}
      />
      <Button kind="quiet" onClick={all}>
        Select all loaded
      </Button>
      <Button kind="quiet" onClick={clear}>
        Select none
      </Button>
    </div>
  );
}

function summaryOf(runs: readonly Run[]): string {
  const counts = new Map<string, number>();
  for (const { job } of runs) counts.set(job, (counts.get(job) ?? 0) + 1);
  const parts = [...counts].slice(0, 5).map(([job, count]) => `${count} of ${job}`);
  return `${parts.join(", ")}${counts.size > 5 ? " and others" : ""}.`;
}

type Answer = { readonly id: string; readonly [member: string]: unknown };

async function inParts(
  runs: readonly Run[],
  act: (ids: string[]) => Promise<{ readonly runs: readonly Answer[] }>,
): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  for (let from = 0; from < runs.length; from += AT_ONCE)
    answers.push(...(await act(runs.slice(from, from + AT_ONCE).map(({ id }) => id))).runs);
  return answers;
}

const DONE = ["cancelled", "requested", "pending"];

function summarize(answers: readonly Answer[], done: string): string {
  const good = answers.filter(({ status }) => DONE.includes(String(status))).length;
  const rest = answers.length - good;
  return `${plural(good, "run")} ${done}${rest > 0 ? `; ${rest} stood otherwise by then and were left alone` : ""}.`;
}
