// The configuration of the instance that serves this page; read only.

import { useQuery } from "@tanstack/react-query";
import { BASE_PATH, call } from "../api/call.js";
import { Code, Facts, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { useMe } from "../shell/me.js";

const WORDS: readonly (readonly [string, string, string])[] = [
  ["instance", "Instance", ""],
  ["database", "Database", "HOLDFAST_DATABASE_URL"],
  ["schema", "Schema", "option schema"],
  ["app", "App", "HOLDFAST_APP"],
  ["release", "Release", "HOLDFAST_RELEASE"],
  ["scheduler", "Scheduler", "HOLDFAST_SCHEDULER_ENABLED"],
  ["worker", "Worker", "HOLDFAST_WORKER_ENABLED"],
  ["poll", "Poll", "HOLDFAST_POLL_INTERVAL"],
  ["retention", "Finished runs are kept", "HOLDFAST_HISTORY_RETENTION_DAYS"],
  ["ledgerRetention", "Every tick is kept", "option ledgerRetention"],
  ["locking", "Locking", "HOLDFAST_LOCKING_ENABLED"],
  ["lockLease", "Lease of locks", "HOLDFAST_LOCK_LEASE"],
  ["migrate", "Migration", "option migrate"],
  ["publicUrl", "Public address", "HOLDFAST_PUBLIC_URL"],
  ["targets", "Services that runs are sent to", "option workers"],
  ["node", "Node", ""],
];

export function Settings() {
  const me = useMe();
  const query = useQuery({
    queryKey: ["settings"],
    queryFn: ({ signal }) => call("settings", "GET /api/settings", { signal }),
  });
  return (
    <>
      <PageHead
        title="Settings"
        lead="The settings of the instance that serves this page. Change them in its configuration."
      />
      {query.error ? <RefusalNote error={query.error} retry={() => void query.refetch()} /> : null}
      <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <Panel title="Instance">
          {query.data === undefined ? (
            <Waiting rows={6} />
          ) : (
            <dl className="grid gap-y-2.5">
              {WORDS.filter(([name]) => query.data[name] !== undefined).map(
                ([name, word, where]) => (
                  <div key={name} className="grid gap-x-4 sm:grid-cols-[15rem_minmax(0,1fr)]">
                    <dt className="text-muted">
                      {word}
                      {where === "" ? null : (
                        <span className="block font-mono text-2xs">{where}</span>
                      )}
                    </dt>
                    <dd className="font-mono text-xs break-all sm:pt-0.5">
                      {textOf(query.data[name])}
                    </dd>
                  </div>
                ),
              )}
            </dl>
          )}
        </Panel>
        <Panel title="You">
          <Facts
            facts={[
              ["Scopes", me.scopes.join(", ")],
              ["Name", me.by ?? "none"],
              [
                "Updates",
                me.hasEvents ? "as they happen (server-sent events)" : "polled every few seconds",
              ],
              [
                "API",
                <span key="api">
                  <Code>{`${BASE_PATH}/api`}</Code>, described at{" "}
                  <a className="link" href={`${BASE_PATH}/openapi.json`}>
                    openapi.json
                  </a>
                </span>,
              ],
            ]}
          />
        </Panel>
      </div>
    </>
  );
}

function textOf(value: unknown): string {
  if (value === null) return "none";
  if (typeof value === "boolean") return value ? "on" : "off";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
  return String(value);
}
