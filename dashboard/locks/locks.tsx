// Named locks: holders and the ends of their leases, waiting calls, and the history of grants.

import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { call } from "../api/call.js";
import type { Grant, Lock } from "../api/wire.js";
import { ActionButton } from "../shared/action.js";
import { durationText, numberText, shortInstance } from "../shared/format.js";
import { NextPage, usePages } from "../shared/pages.js";
import { Code, Empty, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { Badge, type Tone } from "../shared/status.js";
import { useStillList } from "../shared/still.js";
import { Ago, Time } from "../shared/time.js";
import { useMay } from "../shell/me.js";

export function Locks() {
  const held = useQuery({
    queryKey: ["locks", "held"],
    queryFn: ({ signal }) => call("listLocks", "GET /api/locks", { query: { limit: 200 }, signal }),
  });
  const stats = useQuery({
    queryKey: ["locks", "stats"],
    queryFn: ({ signal }) => call("lockStats", "GET /api/locks/stats", { signal }),
  });
  const locks = held.data?.locks ?? [];
  return (
    <>
      <PageHead title="Locks" lead="Named leases for critical sections of your own code." />
      {held.error ? <RefusalNote error={held.error} retry={() => void held.refetch()} /> : null}
      <dl className="mb-4 grid grid-cols-2 gap-3 sm:grid-cols-5">
        {(
          [
            ["Held now", stats.data?.acquired],
            ["Waiting", stats.data?.waiting],
            ["Released", stats.data?.released],
            ["Expired", stats.data?.expired],
            ["Revoked", stats.data?.revoked],
          ] as const
        ).map(([name, value]) => (
          <div key={name} className="rounded-lg border border-line bg-surface px-3.5 py-2.5">
            <dt className="text-xs text-muted">{name}</dt>
            <dd className="text-xl font-semibold">
              {value === undefined ? "–" : numberText(value)}
            </dd>
          </div>
        ))}
      </dl>
      <div className="grid gap-4">
        <Panel title="Held now" isFlush>
          {held.data === undefined ? (
            <Waiting />
          ) : locks.length === 0 ? (
            <Empty title="No lock is held">
              <Code>{'await holdfast.lock("import", {}, async ({ fence, signal }) => { … })'}</Code>{" "}
              runs a function while no other process holds the lock of that name.
            </Empty>
          ) : (
            <ul>
              {locks.map((lock) => (
                <LockRow key={lock.name} lock={lock} />
              ))}
            </ul>
          )}
        </Panel>
        <History />
      </div>
    </>
  );
}

function LockRow({ lock }: { readonly lock: Lock }) {
  const mayChange = useMay("admin");
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 border-t border-line px-4 py-2">
      <span className="min-w-32 flex-1 font-medium">{lock.name}</span>
      <span className="font-mono text-xs text-muted" title={lock.holder}>
        {shortInstance(lock.holder)} · fence {lock.fence}
      </span>
      <span className="text-xs text-muted">
        taken <Ago at={lock.acquiredAt} /> · until <Time at={lock.until} style="time" />
      </span>
      {lock.waiting > 0 ? <Badge tone="late">{`${lock.waiting} waiting`}</Badge> : null}
      {mayChange ? (
        <ActionButton
          label="Release"
          kind="danger"
          isSmall
          confirm={{
            title: `Release the lock ${lock.name}?`,
            summary: `${lock.holder} holds it under fence ${lock.fence}. Its signal aborts at its next renewal; until then it may still be active. The next waiter gets the lock with a larger fence.`,
            verb: "Release it",
            note: "Why? It is kept in the history.",
            isDangerous: true,
          }}
          act={async (note) => {
            const answer = await call("releaseLock", "POST /api/locks/{name}/release", {
              params: { name: lock.name },
              body: note === undefined ? {} : { note },
            });
            return answer.released ? "Released." : "The lock was already free.";
          }}
        />
      ) : null}
    </li>
  );
}

const TONES: Readonly<Record<Grant["state"], Tone>> = {
  acquired: "running",
  released: "ok",
  expired: "missed",
  revoked: "late",
};

function History() {
  const [search, setSearch] = useSearchParams();
  const name = search.get("name") ?? "";
  const pages = usePages(["locks", "history", name], ({ cursor, signal }) =>
    call("lockHistory", "GET /api/locks/history", {
      query: { name, limit: 50, cursor },
      signal,
    }),
  );
  const grants = pages.data?.pages.flatMap((page) => page.grants) ?? [];
  const { shown, still } = useStillList(grants, {
    keyOf: ({ fence }) => String(fence),
    scope: name,
    isPlaceholder: pages.isPlaceholderData,
  });
  return (
    <Panel
      title="History"
      note="every grant"
      actions={
        <input
          className="field min-h-7 w-44 py-0.5 text-xs"
          type="search"
          data-search
          aria-label="Of the lock of this name"
          placeholder="name of a lock   /"
          value={name}
          onChange={(event) =>
            setSearch(event.target.value === "" ? {} : { name: event.target.value }, {
              replace: true,
            })
          }
        />
      }
      isFlush
    >
      {pages.data === undefined ? (
        <Waiting />
      ) : grants.length === 0 ? (
        <Empty title="No grant yet">
          Every grant of a lock is kept here, with how long it was held.
        </Empty>
      ) : (
        <ul {...still}>
          {shown.map((grant) => (
            <li
              key={`${grant.name}${grant.fence}`}
              className="flex flex-wrap items-center gap-x-4 gap-y-1 border-t border-line px-4 py-1.5"
            >
              <span className="w-18">
                <Badge tone={TONES[grant.state]}>{grant.state}</Badge>
              </span>
              <span className="min-w-28 flex-1">{grant.name}</span>
              {grant.note === null ? null : (
                <span className="text-xs text-muted">{grant.note}</span>
              )}
              <span className="font-mono text-xs text-muted" title={grant.holder}>
                {shortInstance(grant.holder)} · {grant.fence}
              </span>
              <span className="text-xs text-muted">
                <Time at={grant.acquiredAt} style="seconds" />
                {grant.heldMs === null ? "" : ` · ${durationText(grant.heldMs)}`}
              </span>
            </li>
          ))}
        </ul>
      )}
      <NextPage of={pages} />
    </Panel>
  );
}
