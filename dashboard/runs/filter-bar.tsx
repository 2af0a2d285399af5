// The filter of the list of runs.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { call } from "../api/call.js";
import { Button } from "../shared/button.js";
import { MomentInput } from "../shared/moment.js";
import { FILTERS, type Filter } from "./filter.js";

const STATUSES = ["pending", "running", "completed", "failed", "cancelled"];
const MODES = ["scheduled", "manual", "test", "backfill", "enqueued"];
const PAUSE_MS = 300;

export function FilterBar({
  filter,
  change,
}: {
  readonly filter: Filter;
  readonly change: (part: Filter) => void;
}) {
  const jobs = useQuery({
    queryKey: ["jobs"],
    queryFn: ({ signal }) => call("listJobs", "GET /api/jobs", { signal }),
  });
  const isFiltered = FILTERS.some((name) => filter[name] !== undefined);
  return (
    <div className="mb-3 grid gap-2">
      <div className="flex flex-wrap items-center gap-x-6 gap-y-2">
        <fieldset className="flex flex-wrap gap-1">
          <legend className="sr-only">Status</legend>
          {["", ...STATUSES].map((status) => (
            <button
              key={status}
              type="button"
              aria-pressed={(filter.status ?? "") === status}
              onClick={() => change({ status })}
              className={`min-h-7 rounded-md px-2.5 ${(filter.status ?? "") === status ? "bg-ink font-medium text-ground" : "text-muted hover:bg-sunken hover:text-ink"}`}
            >
              {status === "" ? "all" : status}
            </button>
          ))}
        </fieldset>
        <Typed
          name="Search input, key or id"
          placeholder="Part of the input, a key, an id   /"
          value={filter.text ?? ""}
          settle={(text) => change({ text })}
          className="min-w-64 flex-1"
          isSearch
        />
      </div>
      <div className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
        <label>
          <span className="sr-only">Job</span>
          <select
            className="field"
            value={filter.job ?? ""}
            onChange={(event) => change({ job: event.target.value })}
          >
            <option value="">any job</option>
            {[
              ...new Set([
                ...(filter.job ? [filter.job] : []),
                ...(jobs.data?.jobs.map(({ name }) => name) ?? []),
              ]),
            ].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          <span className="sr-only">Mode</span>
          <select
            className="field"
            value={filter.mode ?? ""}
            onChange={(event) => change({ mode: event.target.value })}
          >
            <option value="">any mode</option>
            {MODES.map((mode) => (
              <option key={mode}>{mode}</option>
            ))}
          </select>
        </label>
        <Typed
          name="Schedule"
          placeholder="schedule"
          value={filter.schedule ?? ""}
          settle={(schedule) => change({ schedule })}
          className="sm:w-36"
        />
        <Typed
          name="Tag"
          placeholder="tag"
          value={filter.tag ?? ""}
          settle={(tag) => change({ tag })}
          className="sm:w-28"
        />
        <Moment name="From" value={filter.from} change={(from) => change({ from })} />
        <Moment name="To" value={filter.to} change={(to) => change({ to })} />
        {isFiltered ? (
          <Button
            kind="quiet"
            onClick={() => change(Object.fromEntries(FILTERS.map((name) => [name, ""])))}
          >
            Clear
          </Button>
        ) : null}
      </div>
    </div>
  );
}

/** The text after a short pause in typing. */
function Typed(props: {
  readonly name: string;
  readonly placeholder: string;
  readonly value: string;
  readonly settle: (text: string) => void;
  readonly className?: string;
  readonly isSearch?: boolean;
}) {
  const { name, placeholder, value, settle, className = "", isSearch = false } = props;
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = window.setTimeout(() => settle(text), PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [text, value, settle]);
  return (
    <label className={className}>
      <span className="sr-only">{name}</span>
      <input
        className="field"
        type="search"
        data-search={isSearch ? "" : undefined}
        maxLength={200}
        placeholder={placeholder}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
    </label>
  );
}

function Moment(props: {
  readonly name: string;
  readonly value: string | undefined;
  readonly change: (at: string) => void;
}) {
  const { name, value, change } = props;
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: MomentInput is the control.
    <label className="flex items-center gap-1.5 text-xs text-muted max-sm:flex-col max-sm:items-start">
      {name}
      <MomentInput
        className="text-xs sm:w-48"
        at={value ?? null}
        change={(at) => change(at ?? "")}
      />
    </label>
  );
}
