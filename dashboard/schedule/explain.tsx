// Explains why there was a run at an instant, or why there was none: one sentence with its evidence.

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../api/call.js";
import type { Explanation, Schedule } from "../api/wire.js";
import { Button } from "../shared/button.js";
import { CopyButton } from "../shared/copy.js";
import { MomentInput, useClockName } from "../shared/moment.js";
import { Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { Sentence } from "../shared/sentence.js";
import { Badge, type Tone } from "../shared/status.js";
import { Time } from "../shared/time.js";
import { styleFor } from "../shared/zone.js";

const TONES: Readonly<Record<Explanation["outcome"], Tone>> = {
  fired: "ok",
  skipped: "skipped",
  missed: "missed",
  planned: "quiet",
  due: "late",
  no_tick: "quiet",
  unknown: "quiet",
};

export function Explain(props: {
  readonly schedule: Schedule;
  readonly at: string | null;
  readonly ask: (at: string | null) => void;
}) {
  const { schedule, at, ask } = props;
  const clock = useClockName();
  return (
    <Panel
      title="Why?"
      note={
        at === null ? "choose any time" : <Time at={at} zone={schedule.timezone} style="full" />
      }
      actions={
        <div className="flex items-center gap-2">
          <MomentInput
            className="min-h-7 w-auto py-0.5 text-xs"
            label={`A moment, in ${clock}`}
            hasSeconds
            at={at}
            change={(moment) => {
              if (moment !== null) ask(moment);
            }}
          />
          {at === null ? null : (
            <Button isSmall kind="quiet" onClick={() => ask(null)}>
              Close
            </Button>
          )}
        </div>
      }
    >
      {at === null ? (
        <p className="text-muted">
          Click a mark above, a row of the ledger or an upcoming tick, or enter a time. The answer
          says how the tick was computed, which policy applied, and which run blocked it.
        </p>
      ) : (
        <Answer schedule={schedule} at={at} ask={ask} />
      )}
    </Panel>
  );
}

function Answer(props: {
  readonly schedule: Schedule;
  readonly at: string;
  readonly ask: (at: string) => void;
}) {
  const { schedule, at, ask } = props;
  const query = useQuery({
    queryKey: ["schedule", schedule.name, "explain", at],
    queryFn: ({ signal }) =>
      call("explain", "GET /api/schedules/{name}/explain", {
        params: { name: schedule.name },
        query: { at },
        signal,
      }),
  });
  const answer = query.data;
  if (query.error) return <RefusalNote error={query.error} />;
  if (answer === undefined) return <Waiting rows={4} />;
  const words = [answer.text, ...answer.evidence].join("\n");
  const nearStyle = styleFor([answer.before, answer.after]);
  return (
    <div data-explanation>
      <div className="flex items-start justify-between gap-3">
        <p className="max-w-4xl font-medium">
          <Badge tone={TONES[answer.outcome]}>{answer.outcome.replace("_", " ")}</Badge>{" "}
          <span className="ml-1">
            <Sentence text={answer.text} zone={schedule.timezone} style="full" />
          </span>
        </p>
        <CopyButton text={words} what="the explanation" />
      </div>
      <ul className="mt-3 grid gap-1 border-l-2 border-line pl-4 text-muted">
        {answer.evidence.map((line) => (
          <EvidenceLine key={line} line={line} zone={schedule.timezone} />
        ))}
      </ul>
      <div className="mt-3 flex flex-wrap gap-x-4 gap-y-1 text-xs">
        {answer.runId === null ? null : (
          <Link href={`/runs/${answer.runId}`} className="link">
            The run of this tick
          </Link>
        )}
        {answer.before === null ? null : (
          <button type="button" className="link" onClick={() => ask(answer.before ?? at)}>
            ← tick before, <Time at={answer.before} zone={schedule.timezone} style={nearStyle} />
          </button>
        )}
        {answer.after === null ? null : (
          <button type="button" className="link" onClick={() => ask(answer.after ?? at)}>
            tick after, <Time at={answer.after} zone={schedule.timezone} style={nearStyle} /> →
          </button>
        )}
      </div>
    </div>
  );
}

/** Each begins with its subject. */
function EvidenceLine({ line, zone }: { readonly line: string; readonly zone: string }) {
  const [, topic, rest] = /^([A-Z][\w ]{2,20}): ([\s\S]+)$/.exec(line) ?? [];
  return (
    <li>
      {topic === undefined ? (
        <Sentence text={line} zone={zone} style="full" />
      ) : (
        <>
          <span className="font-medium text-ink">{topic}:</span>{" "}
          <Sentence text={rest ?? ""} zone={zone} style="full" />
        </>
      )}
    </li>
  );
}
