// The buttons for a run: cancel, retry, run again with another input, remove.

import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../api/call.js";
import type { Run } from "../api/wire.js";
import { EnqueueDialog } from "../runs/enqueue-dialog.js";
import { forgetList } from "../runs/kept-list.js";
import { ActionButton } from "../shared/action.js";
import { Button } from "../shared/button.js";
import { useMay } from "../shell/me.js";

const CANCEL_WORDS: Readonly<Record<string, string>> = {
  cancelled: "Cancelled.",
  requested: "Its signal was aborted.",
  already_terminal: "It had already ended.",
};

export function RunActions({ run }: { readonly run: Run }) {
  const mayChange = useMay("admin");
  const mayEnqueue = useMay("enqueue");
  const [isAgain, setAgain] = useState(false);
  const [, navigate] = useLocation();
  const params = { id: run.id };
  // Work of another system cannot be started from here.
  const isReport = run.schedule !== null && run.job === `monitor:${run.schedule}`;
  const isLive = run.status === "pending" || run.status === "running";
  return (
    <>
      {mayEnqueue && !isReport ? <Button onClick={() => setAgain(true)}>Run again…</Button> : null}
      {mayChange && !isReport && (run.status === "failed" || run.status === "cancelled") ? (
        <ActionButton
          label="Retry"
          kind="main"
          confirm={{
            title: "Retry this run?",
            summary:
              "It gets one more attempt, under a new fence, with the same input. Done items are not repeated.",
            verb: "Retry",
          }}
          act={async () => {
            await call("retryRun", "POST /api/runs/{id}/retry", { params, body: {} });
            return "It will be retried.";
          }}
        />
      ) : null}
      {mayChange && isLive ? (
        <ActionButton
          label="Cancel"
          kind="danger"
          confirm={{
            title: "Cancel this run?",
            summary:
              run.status === "running"
                ? "Its signal aborts; a handler that ignores it loses its lease. Effects of the run stay."
                : "It never starts.",
            verb: "Cancel it",
            isDangerous: true,
          }}
          act={async () => {
            const { status } = await call("cancelRun", "POST /api/runs/{id}/cancel", {
              params,
              body: {},
            });
            return CANCEL_WORDS[status] ?? status;
          }}
        />
      ) : null}
      {mayChange && !isLive ? (
        <ActionButton
          label="Remove"
          kind="quiet"
          confirm={{
            title: "Remove this run?",
            summary:
              "The run is deleted with its attempts, items and log lines. Its tick stays in the ledger. This cannot be undone.",
            verb: "Remove it",
            isDangerous: true,
          }}
          act={async () => {
            await call("deleteRun", "DELETE /api/runs/{id}", { params });
            forgetList();
            navigate("/runs");
            return "Removed.";
          }}
        />
      ) : null}
      {isAgain ? (
        <EnqueueDialog
          job={run.job}
          input={run.input}
          onClose={() => setAgain(false)}
          onDone={(id) => navigate(`/runs/${id}`)}
        />
      ) : null}
    </>
  );
}
