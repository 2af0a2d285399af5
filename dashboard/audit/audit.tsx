// The audit trail: who changed what, from where, when and why.

import { Link, useSearchParams } from "wouter";
import { call } from "../api/call.js";
import type { AuditEntry } from "../api/wire.js";
import { shortInstance } from "../shared/format.js";
import { NextPage, usePages } from "../shared/pages.js";
import { Empty, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { Sentence } from "../shared/sentence.js";
import { Badge } from "../shared/status.js";
import { useStillList } from "../shared/still.js";
import { Ago, Time } from "../shared/time.js";

/** Each noun once: the compiler reports a noun of the server that this page lacks. */
const NOUNS = Object.keys({
  schedule: 0,
  run: 0,
  queue: 0,
  lock: 0,
  calendar: 0,
  instance: 0,
  alert: 0,
  everything: 0,
  session: 0,
  key: 0,
  access: 0,
} satisfies Record<AuditEntry["noun"], 0>);

export function Audit() {
  const [search, setSearch] = useSearchParams();
  const noun = NOUNS.find((each) => each === search.get("noun"));
  const who = search.get("who") ?? "";
  const set = (part: Readonly<Record<string, string>>) => {
    const next = new URLSearchParams(window.location.search);
    for (const [name, value] of Object.entries(part)) {
      if (value === "") next.delete(name);
      else next.set(name, value);
    }
    setSearch(next, { replace: true });
  };
  const pages = usePages(["audit", noun ?? "any", who], ({ cursor, signal }) =>
    call("listAudit", "GET /api/audit", {
      query: { noun, who, limit: 100, cursor },
      signal,
    }),
  );
  const entries = pages.data?.pages.flatMap((page) => page.entries) ?? [];
  const { shown, still } = useStillList(entries, {
    keyOf: ({ id }) => id,
    scope: `${noun} ${who}`,
    isPlaceholder: pages.isPlaceholderData,
  });
  return (
    <>
      <PageHead title="Audit" lead="Every requested change: who, from where and why." />
      <div className="mb-3 flex flex-wrap gap-2">
        <label>
          <span className="sr-only">What was changed</span>
          <select
            className="field"
            value={noun ?? ""}
            onChange={(event) => set({ noun: event.target.value })}
          >
            <option value="">anything</option>
            {NOUNS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label className="w-56">
          <span className="sr-only">Who</span>
          <input
            data-search
            className="field"
            type="search"
            placeholder="full name of the actor   /"
            maxLength={200}
            value={who}
            onChange={(event) => set({ who: event.target.value })}
          />
        </label>
      </div>
      {pages.error ? <RefusalNote error={pages.error} retry={() => void pages.refetch()} /> : null}
      <Panel isFlush>
        {pages.data === undefined ? (
          <Waiting rows={6} />
        ) : entries.length === 0 ? (
          <Empty title="No entry">
            Every pause, edit, trigger, cancel, retry and release adds an entry here, from code, the
            command line or HTTP.
          </Empty>
        ) : (
          <ul {...still}>
            {shown.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </ul>
        )}
        <NextPage of={pages} />
      </Panel>
    </>
  );
}

function Entry({ entry }: { readonly entry: AuditEntry }) {
  const from = [entry.via, entry.address, entry.scope === null ? null : `scope ${entry.scope}`];
  return (
    <li className="grid gap-x-4 gap-y-0.5 border-t border-line px-4 py-2 first:border-t-0 md:grid-cols-[10rem_minmax(0,1fr)_minmax(0,16rem)]">
      <span className="text-xs text-muted">
        <Time at={entry.at} style="seconds" />
        <span className="md:block">
          {" "}
          <Ago at={entry.at} />
        </span>
      </span>
      <div className="min-w-0">
        <Badge tone="quiet">{entry.verb.replaceAll("_", " ")}</Badge> <Subject entry={entry} />
        {entry.note === null ? null : <p className="mt-0.5">{entry.note}</p>}
        {entry.change === null ? null : (
          <p className="mt-0.5 font-mono text-xs wrap-anywhere text-muted">
            <Sentence text={entry.change} />
          </p>
        )}
      </div>
      <div className="min-w-0 text-xs">
        <p className="max-sm:wrap-anywhere sm:truncate" title={entry.who}>
          {shortInstance(entry.who)}
        </p>
        <p
          className="text-muted max-sm:wrap-anywhere sm:truncate"
          title={entry.requestId ?? undefined}
        >
          {from.filter((part) => part !== null).join(" · ")}
        </p>
      </div>
    </li>
  );
}

function Subject({ entry: { noun, name } }: { readonly entry: AuditEntry }) {
  if (name === null) return <>{noun}</>;
  const path =
    noun === "schedule"
      ? `/schedules/${encodeURIComponent(name)}`
      : noun === "run"
        ? `/runs/${encodeURIComponent(name)}`
        : null;
  return (
    <>
      {noun}{" "}
      {path === null ? (
        name
      ) : (
        <Link href={path} className="link">
          {name}
        </Link>
      )}
    </>
  );
}
