// The dialog that enqueues a run: its fields come from the job's schema, if the job announced one.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call, Refused } from "../api/call.js";
import { Button } from "../shared/button.js";
import { Dialog } from "../shared/dialog.js";
import { Field, JsonField, problemOf } from "../shared/fields.js";
import { RefusalNote } from "../shared/refusal.js";
import { useToast } from "../shared/toast.js";
import { fieldsOf, sampleOf } from "./schema.js";
import { SchemaForm } from "./schema-form.js";

export function EnqueueDialog(props: {
  readonly job?: string;
  readonly input?: unknown;
  readonly onClose: () => void;
  readonly onDone: (id: string) => void;
}) {
  const { onClose, onDone } = props;
  const [job, setJob] = useState(props.job ?? "");
  const [text, setText] = useState(
    props.input === undefined ? "" : JSON.stringify(props.input, null, 2),
  );
  const [key, setKey] = useState("");
  const [delay, setDelay] = useState("");
  const [priority, setPriority] = useState("");
  const [tags, setTags] = useState("");
  const jobs = useQuery({
    queryKey: ["jobs"],
    queryFn: ({ signal }) => call("listJobs", "GET /api/jobs", { signal }),
  });
  const schema = jobs.data?.jobs.find(({ name }) => name === job)?.inputSchema ?? null;
  const fields = fieldsOf(schema);
  const shown = text === "" && schema !== null ? JSON.stringify(sampleOf(schema), null, 2) : text;
  const client = useQueryClient();
  const toast = useToast();
  const enqueue = useMutation({
    mutationFn: () => {
      const problem = problemOf(shown);
      if (problem !== null) throw new Refused(400, "input_invalid", problem);
      const labels = tags
        .split(",")
        .map((tag) => tag.trim())
        .filter((tag) => tag !== "");
      return call("enqueue", "POST /api/jobs/{name}/runs", {
        params: { name: job },
        body: {
          input: shown.trim() === "" ? null : (JSON.parse(shown) as unknown),
          ...(key === "" ? {} : { key }),
          ...(delay === "" ? {} : { delay }),
          ...(priority === "" ? {} : { priority: Number(priority) }),
          ...(labels.length === 0 ? {} : { tags: labels }),
        },
      });
    },
    onSuccess: ({ id, deduplicated }) => {
      toast(deduplicated ? "A run with this key exists already; this is it." : "Enqueued.");
      void client.invalidateQueries();
      onClose();
      onDone(id);
    },
  });
  return (
    <Dialog title="Enqueue a run" onClose={onClose} isWide>
      <form
        className="grid gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          enqueue.mutate();
        }}
      >
        <Field label="Job">
          <select
            className="field"
            required
            value={job}
            onChange={(event) => {
              setJob(event.target.value);
              if (props.input === undefined) setText("");
            }}
          >
            <option value="">choose a job</option>
            {jobs.data?.jobs.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </Field>
        {fields === null ? null : <SchemaForm fields={fields} text={shown} onChange={setText} />}
        <JsonField
          label={fields === null ? "Input" : "Input as JSON"}
          text={shown}
          onChange={setText}
          rows={fields === null ? 7 : 5}
        />
        <details>
          <summary className="text-xs text-muted">Key, delay, priority, tags</summary>
          <div className="mt-2 grid gap-3 sm:grid-cols-4">
            <Field label="Key" hint="the same key gives the same run">
              <input
                className="field"
                value={key}
                onChange={(event) => setKey(event.target.value)}
              />
            </Field>
            <Field label="Delay" hint='such as "5m"'>
              <input
                className="field"
                value={delay}
                onChange={(event) => setDelay(event.target.value)}
              />
            </Field>
            <Field label="Priority" hint="−100 to 100, one step is worth a minute of waiting">
              <input
                className="field"
                value={priority}
                inputMode="numeric"
                onChange={(event) => setPriority(event.target.value)}
              />
            </Field>
            <Field label="Tags" hint="separated by commas">
              <input
                className="field"
                value={tags}
                onChange={(event) => setTags(event.target.value)}
              />
            </Field>
          </div>
        </details>
        {enqueue.error ? <RefusalNote error={enqueue.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="main" disabled={enqueue.isPending || job === ""}>
            Enqueue
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
