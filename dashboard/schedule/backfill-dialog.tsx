// The dialog that requests runs for the ticks of a past range.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api/call.js";
import type { Schedule } from "../api/wire.js";
import { Button } from "../shared/button.js";
import { Dialog } from "../shared/dialog.js";
import { Field } from "../shared/fields.js";
import { plural } from "../shared/format.js";
import { MomentInput, useClockName } from "../shared/moment.js";
import { RefusalNote } from "../shared/refusal.js";
import { useToast } from "../shared/toast.js";

export function BackfillDialog({
  schedule,
  onClose,
}: {
  readonly schedule: Schedule;
  readonly onClose: () => void;
}) {
  const [from, setFrom] = useState(minuteAgo(86_400_000));
  const [to, setTo] = useState(minuteAgo(0));
  const [isAll, setAll] = useState(false);
  const clock = useClockName();
  const client = useQueryClient();
  const toast = useToast();
  const backfill = useMutation({
    mutationFn: () =>
      call("backfill", "POST /api/schedules/{name}/backfill", {
        params: { name: schedule.name },
        body: { from: from ?? "", to: to ?? "", all: isAll },
      }),
    onSuccess: ({ total }) => {
      toast(`${plural(total, "tick")} in the range; their runs follow one after the other.`);
      void client.invalidateQueries();
      onClose();
    },
  });
  return (
    <Dialog title={`Backfill ${schedule.name}`} onClose={onClose}>
      <form
        className="grid gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          backfill.mutate();
        }}
      >
        <p className="text-muted">
          A run of mode backfill is made for each tick of the range, one after the other. What the
          ledger says about those ticks stays as it is.
        </p>
        <div className="grid gap-3 sm:grid-cols-2">
          <Field label="From" hint={clock}>
            <MomentInput at={from} change={setFrom} isRequired />
          </Field>
          <Field label="To" hint={clock}>
            <MomentInput at={to} change={setTo} isRequired />
          </Field>
        </div>
        <label className="flex items-center gap-2">
          <input
            type="checkbox"
            className="size-4 accent-accent"
            checked={isAll}
            onChange={(event) => setAll(event.target.checked)}
          />
          Also ticks that have a completed run
        </label>
        {backfill.error ? <RefusalNote error={backfill.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="main" disabled={backfill.isPending}>
            Backfill
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** A whole minute, as the inputs show it. */
function minuteAgo(ms: number): string | null {
  const at = Date.now() - ms;
  return new Date(at - (at % 60_000)).toISOString();
}
