// The checks of the tables, run in one snapshot, each with its evidence.

import { useQuery } from "@tanstack/react-query";
import { call } from "../api/call.js";
import type { Check as CheckAnswer } from "../api/wire.js";
import { Button } from "../shared/button.js";
import { durationText, numberText, plural } from "../shared/format.js";
import { JsonView } from "../shared/json-view.js";
import { Code, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { Badge } from "../shared/status.js";

export function Check() {
  const query = useQuery({
    queryKey: ["check"],
    queryFn: ({ signal }) => call("check", "GET /api/check", { query: { timeout: "20s" }, signal }),
    // It reads much, so it runs on request and is not repeated.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  const checks = [...(query.data?.checks ?? [])].sort((a, b) => Number(a.ok) - Number(b.ok));
  const broken = checks.filter(({ ok }) => !ok).length;
  return (
    <>
      <PageHead
        title="Check"
        after={
          query.data === undefined ? undefined : query.data.ok ? (
            <Badge tone="ok" sign="✓">
              all promises hold
            </Badge>
          ) : (
            <Badge
              tone="failed"
              sign="!"
            >{`${plural(broken, "promise")} broken or not looked at`}</Badge>
          )
        }
        lead={
          <>
            Compares the tables with the promises, in one snapshot, like <Code>holdfast check</Code>
            . <Code>holdfast repair</Code> prints the possible repairs.
          </>
        }
        actions={
          <Button onClick={() => void query.refetch()} disabled={query.isFetching}>
            {query.isFetching ? "Checking…" : "Check again"}
          </Button>
        }
      />
      {query.error ? <RefusalNote error={query.error} retry={() => void query.refetch()} /> : null}
      <Panel isFlush>
        {query.data === undefined ? (
          query.error ? null : (
            <Waiting rows={8} />
          )
        ) : (
          <ul>
            {checks.map((check) => (
              <CheckRow key={check.name} check={check} />
            ))}
          </ul>
        )}
      </Panel>
    </>
  );
}

function CheckRow({ check }: { readonly check: CheckAnswer }) {
  return (
    <li className="border-t border-line px-4 py-2 first:border-t-0">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Badge
          tone={check.ok ? "ok" : check.unfinished ? "late" : "failed"}
          sign={check.ok ? "✓" : "!"}
        >
          {check.ok ? "holds" : check.unfinished ? "not finished" : "broken"}
        </Badge>
        <span className="min-w-0 flex-1">{check.name.replaceAll(/[_-]/g, " ")}</span>
        <span className="w-10 text-xs text-muted">{check.promise}</span>
        <span className="w-16 text-right text-xs text-muted">{durationText(check.tookMs)}</span>
      </div>
      {check.error === null ? null : <p className="mt-1 text-xs text-failed-ink">{check.error}</p>}
      {check.violations === 0 ? null : (
        <details className="mt-1" open>
          <summary className="text-xs text-failed-ink">
            {numberText(check.violations)} against it
          </summary>
          <div className="mt-2">
            <JsonView title="Evidence" value={check.evidence} />
          </div>
        </details>
      )}
    </li>
  );
}
