// The dialog that makes a run now, beside the cadence, with the schedule's input or another one.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../api/call.js";
import type { Schedule } from "../api/wire.js";
import { Button } from "../shared/button.js";
import { Dialog } from "../shared/dialog.js";
import { JsonField, problemOf } from "../shared/fields.js";
import { RefusalNote } from "../shared/refusal.js";
import { useToast } from "../shared/toast.js";
import { useMay } from "../shell/me.js";
import { triggeredWords } from "./actions.js";

export function TriggerDialog({
  schedule,
  onClose,
}: {
  readonly schedule: Schedule;
  readonly onClose: () => void;
}) {
  const own = JSON.stringify(schedule.input, null, 2);
  const [text, setText] = useState(own);
  const mayChoose = useMay("enqueue");
  const client = useQueryClient();
  const toast = useToast();
  const [, navigate] = useLocation();
  const trigger = useMutation({
    mutationFn: () =>
      call("trigger", "POST /api/schedules/{name}/trigger", {
        params: { name: schedule.name },
        body: text === own ? {} : { input: JSON.parse(text) as unknown },
      }),
    onSuccess: (answer) => {
      toast(triggeredWords(answer), "runId" in answer ? "ok" : "failed");
      void client.invalidateQueries();
      onClose();
      if ("runId" in answer) navigate(`/runs/${answer.runId}`);
    },
  });
  return (
    <Dialog title={`Trigger ${schedule.name}`} onClose={onClose}>
      <form
        className="grid gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          trigger.mutate();
        }}
      >
        <p className="text-muted">
          A run of {schedule.job} is made now, of mode manual. The cadence stays as it is, and it
          does not count in success rates.
        </p>
        {mayChoose ? <JsonField label="Input" text={text} onChange={setText} rows={6} /> : null}
        {trigger.error ? <RefusalNote error={trigger.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            kind="main"
            disabled={trigger.isPending || problemOf(text) !== null}
          >
            Trigger
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
