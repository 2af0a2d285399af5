// Alerts: each problem with its evidence, who acknowledged it, and its deliveries.

import { useSearchParams } from "wouter";
import { call } from "../api/call.js";
import { ActionButton } from "../shared/action.js";
import { NextPage, usePages } from "../shared/pages.js";
import { Empty, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { useStillList } from "../shared/still.js";
import { useMay } from "../shell/me.js";
import { AlertRow } from "./alert-row.js";

const STATES = ["open", "resolved", "all"] as const;

export function Alerts() {
  const [search, setSearch] = useSearchParams();
  const state = STATES.find((each) => each === search.get("state")) ?? "open";
  const mayChange = useMay("admin");
  const pages = usePages(["alerts", state], ({ cursor, signal }) =>
    call("listAlerts", "GET /api/alerts", {
      query: { state, limit: 50, cursor },
      signal,
    }),
  );
  const alerts = pages.data?.pages.flatMap((page) => page.alerts) ?? [];
  const { shown, still } = useStillList(alerts, {
    keyOf: ({ id }) => id,
    scope: state,
    isPlaceholder: pages.isPlaceholderData,
  });
  return (
    <>
      <PageHead
        title="Alerts"
        lead="An alert opens when its condition begins, and is resolved when the condition ends."
        actions={
          mayChange ? (
            <ActionButton
              label="Send a test"
              confirm={{
                title: "Send a test alert?",
                summary: "Every destination of this instance gets one test message.",
                verb: "Send it",
              }}
              act={async () => {
                const { deliveries } = await call("testAlerts", "POST /api/alerts/test", {
                  body: {},
                });
                if (deliveries.length === 0)
                  return "No destination is set up; see the guide on alerts.";
                return deliveries
                  .map(({ destination, ok, error }) => `${destination}: ${ok ? "sent" : error}`)
                  .join("; ");
              }}
            />
          ) : undefined
        }
      />
      <fieldset className="mb-3 flex gap-1">
        <legend className="sr-only">Which alerts</legend>
        {STATES.map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={state === each}
            onClick={() => setSearch(each === "open" ? {} : { state: each }, { replace: true })}
            className={`min-h-7 rounded-md px-2.5 ${state === each ? "bg-ink font-medium text-ground" : "text-muted hover:bg-sunken hover:text-ink"}`}
          >
            {each}
          </button>
        ))}
      </fieldset>
      {pages.error ? <RefusalNote error={pages.error} retry={() => void pages.refetch()} /> : null}
      <Panel isFlush>
        {pages.data === undefined ? (
          <Waiting />
        ) : shown.length === 0 ? (
          <Empty title={state === "open" ? "Nothing is wrong" : "No alert"}>
            An alert opens when a run falls silent, too many runs fail, a schedule breaks or gets
            stuck, or no instance executes a job. The option alerts sets where alerts are sent.
          </Empty>
        ) : (
          <ul {...still}>
            {shown.map((alert) => (
              <AlertRow key={alert.id} alert={alert} />
            ))}
          </ul>
        )}
        <NextPage of={pages} />
      </Panel>
    </>
  );
}
