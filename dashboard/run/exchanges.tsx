// Each dispatch of a run to a service: its response, or the reason for a missing one, and the callback that ended the
// run later.

import { useQuery } from "@tanstack/react-query";
import { call } from "../api/call.js";
import type { Exchange, Run } from "../api/wire.js";
import { durationText, plural } from "../shared/format.js";
import { Panel } from "../shared/panel.js";
import { Badge, type Tone } from "../shared/status.js";
import { Time } from "../shared/time.js";

const OUTCOMES: Readonly<Record<Exchange["outcome"], readonly [Tone, string]>> = {
  completed: ["ok", "done"],
  accepted: ["running", "accepted"],
  failed: ["failed", "failed"],
  unknown: ["late", "no answer"],
  not_delivered: ["skipped", "not delivered"],
};
const CALLS: Readonly<Record<NonNullable<Exchange["callback"]>["verb"], string>> = {
  complete: "done",
  fail: "failed",
  release: "handed back",
};

export function Exchanges({ run }: { readonly run: Run }) {
  const query = useQuery({
    queryKey: ["run", run.id, "exchanges", run.status, run.attempt],
    queryFn: ({ signal }) =>
      call("listExchanges", "GET /api/runs/{id}/exchanges", { params: { id: run.id }, signal }),
    placeholderData: (before) => before,
  });
  const exchanges = query.data?.exchanges ?? [];
  const [first] = exchanges;
  if (first === undefined) return null;
  return (
    <Panel
      title="Exchanges"
      note={`with ${first.target}, sent ${plural(exchanges.length, "time")}`}
      isFlush
    >
      <ol>
        {exchanges.map((exchange) => (
          <Row key={exchange.fence} exchange={exchange} />
        ))}
      </ol>
    </Panel>
  );
}

function Row({ exchange }: { readonly exchange: Exchange }) {
  const { attempt, at, durationMs, method, url, outcome, status, answer, error } = exchange;
  const { callback } = exchange;
  const [tone, word] = OUTCOMES[outcome];
  return (
    <li className="grid gap-x-4 gap-y-1 border-t border-line px-4 py-2 sm:grid-cols-[7.5rem_8.5rem_minmax(0,1fr)]">
      <div className="text-xs">
        <span className="font-medium">Attempt {attempt}</span>
        <div className="text-2xs text-muted">
          <Time at={at} style="time" /> · {durationText(durationMs)}
        </div>
      </div>
      <div>
        <Badge tone={tone}>{status === null ? word : `${status} ${word}`}</Badge>
      </div>
      <div className="grid min-w-0 gap-0.5 text-xs">
        <div className="font-mono">
          <span className="text-muted">{method}</span> {url}
        </div>
        {error === null ? null : <div className="text-failed-ink">{error}</div>}
        {answer === null ? null : (
          <div className="font-mono whitespace-pre-wrap text-muted">{answer}</div>
        )}
        {callback === null ? null : (
          <div className="text-muted">
            called back “{CALLS[callback.verb]}” at <Time at={callback.at} style="time" />,{" "}
            {durationText(Math.max(0, Date.parse(callback.at) - Date.parse(at)))} after it was sent
          </div>
        )}
      </div>
    </li>
  );
}
