// The dialog that creates or changes a schedule. It shows the next ten ticks during typing, with notes on clock
// changes. A problem appears under its field.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call, Refused } from "../api/call.js";
import type { Schedule } from "../api/wire.js";
import { Button } from "../shared/button.js";
import { Dialog } from "../shared/dialog.js";
import { Field, JsonField } from "../shared/fields.js";
import { RefusalNote } from "../shared/refusal.js";
import { useToast } from "../shared/toast.js";
import { bodyOf, draftOf, NEW_DRAFT, type ScheduleDraft } from "./draft.js";
import { DraftPreview } from "./draft-preview.js";
import { MonitorFields, PolicyFields, WhenFields } from "./edit-fields.js";

export function ScheduleDialog(props: {
  readonly title: string;
  /** The schedule to change, or the template of a new one. */
  readonly from?: Schedule;
  /** Its name stays. */
  readonly isEdit?: boolean;
  readonly onClose: () => void;
  readonly onSaved: (name: string) => void;
}) {
  const { title, from, isEdit = false, onClose, onSaved } = props;
  const [draft, setDraft] = useState<ScheduleDraft>(
    from ? { ...draftOf(from), ...(isEdit ? {} : { name: `${from.name}-copy` }) } : NEW_DRAFT,
  );
  // The version that filled the form: a change that somebody else saves meanwhile is not overwritten.
  const [ifVersion] = useState(isEdit ? from?.version : 0);
  const change = (part: Partial<ScheduleDraft>) => setDraft((before) => ({ ...before, ...part }));
  const jobs = useQuery({
    queryKey: ["jobs"],
    queryFn: ({ signal }) => call("listJobs", "GET /api/jobs", { signal }),
  });
  const client = useQueryClient();
  const toast = useToast();
  const body = bodyOf(draft);
  const save = useMutation({
    mutationFn: () => {
      if (body.problem !== null) throw new Refused(400, "input_invalid", body.problem);
      return call("putSchedule", "PUT /api/schedules/{name}", {
        params: { name: draft.name },
        query: { ifVersion },
        body: body.value,
      });
    },
    onSuccess: ({ schedule, warnings }) => {
      void client.invalidateQueries();
      toast(`Saved ${schedule.name}.${warnings.length > 0 ? ` ${warnings[0]}` : ""}`);
      onClose();
      onSaved(schedule.name);
    },
  });
  return (
    <Dialog title={title} onClose={onClose} isWide>
      <form
        className="grid gap-5 md:grid-cols-[minmax(0,1fr)_17rem]"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <div className="grid content-start gap-3">
          {isEdit && from?.source === "code" ? (
            <p className="rounded-md bg-late/14 px-3 py-2 text-late-ink">
              This schedule is declared in code. Your changes stay until its definition in code
              changes.
            </p>
          ) : null}
          <div className="grid gap-3 sm:grid-cols-2">
            <Field label="Name">
              <input
                className="field"
                required
                maxLength={200}
                disabled={isEdit}
                value={draft.name}
                placeholder="nightly-report"
                onChange={(event) => change({ name: event.target.value })}
              />
            </Field>
            <Field label="Job">
              <select
                className="field"
                required={!draft.monitor}
                disabled={draft.monitor}
                value={draft.job}
                onChange={(event) => change({ job: event.target.value })}
              >
                <option value="">choose a job</option>
                {[...new Set([draft.job, ...(jobs.data?.jobs.map(({ name }) => name) ?? [])])]
                  .filter((name) => name !== "")
                  .map((name) => (
                    <option key={name}>{name}</option>
                  ))}
              </select>
            </Field>
          </div>
          <label className="flex items-center gap-2">
            <input
              type="checkbox"
              className="size-4 accent-accent"
              checked={draft.monitor}
              onChange={(event) => change({ monitor: event.target.checked })}
            />
            A monitor: another system does the work and checks in here
          </label>
          <WhenFields draft={draft} change={change} />
          {draft.monitor ? (
            <MonitorFields draft={draft} change={change} />
          ) : (
            <>
              <JsonField label="Input" text={draft.input} onChange={(input) => change({ input })} />
              <PolicyFields draft={draft} change={change} />
            </>
          )}
          {save.error ? <RefusalNote error={save.error} /> : null}
          <div className="flex justify-end gap-2">
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind="main" disabled={save.isPending || body.problem !== null}>
              Save
            </Button>
          </div>
        </div>
        <DraftPreview draft={draft} />
      </form>
    </Dialog>
  );
}
