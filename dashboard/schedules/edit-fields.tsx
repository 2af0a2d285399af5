// The fields of a schedule: when it ticks, and by which policies.

import { Field, JsonField } from "../shared/fields.js";
import type { ScheduleDraft } from "./draft.js";

type Props = {
  readonly draft: ScheduleDraft;
  readonly change: (part: Partial<ScheduleDraft>) => void;
};

/** The members that are typed as text. */
type TextName = Exclude<keyof ScheduleDraft, "monitor">;

const ZONES: readonly string[] = (() => {
  try {
    return ["UTC", ...Intl.supportedValuesOf("timeZone")];
  } catch {
    return ["UTC"];
  }
})();

const KINDS = [
  ["cron", "Cron"],
  ["every", "Interval"],
  ["at", "Once"],
] as const;

export function WhenFields({ draft, change }: Props) {
  const text = (name: TextName, placeholder: string) => (
    <input
      className="field font-mono text-xs"
      value={draft[name]}
      placeholder={placeholder}
      spellCheck={false}
      onChange={(event) => change({ [name]: event.target.value })}
    />
  );
  return (
    <fieldset className="grid gap-3">
      <legend className="sr-only">When</legend>
      <div className="flex gap-1" role="radiogroup" aria-label="Kind of schedule">
        {KINDS.map(([kind, word]) => (
          <label
            key={kind}
            className={`cursor-pointer rounded-md px-3 py-1 has-focus-visible:outline-2 has-focus-visible:outline-accent ${draft.kind === kind ? "bg-sunken font-medium" : "text-muted"}`}
          >
            <input
              type="radio"
              name="kind"
              className="sr-only"
              checked={draft.kind === kind}
              onChange={() => change({ kind })}
            />
            {word}
          </label>
        ))}
      </div>
      <div className="grid gap-3 sm:grid-cols-2">
        {draft.kind === "cron" ? (
          <Field
            label="Cron"
            hint="minute hour day month weekday; with six fields, the first is seconds"
          >
            {text("cron", "0 2 * * *")}
          </Field>
        ) : null}
        {draft.kind === "every" ? (
          <Field label="Every" hint='"10m", or "10m..15m": random, after each run'>
            {text("every", "10m")}
          </Field>
        ) : null}
        {draft.kind === "at" ? (
          <Field label="At" hint="an instant with its zone">
            {text("at", "2030-01-31T09:00:00Z")}
          </Field>
        ) : null}
        <Field label="Time zone">
          <input
            className="field"
            list="zones"
            value={draft.timezone}
            onChange={(event) => change({ timezone: event.target.value })}
          />
          <datalist id="zones">
            {ZONES.map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </Field>
      </div>
      <details>
        <summary className="text-xs text-muted">Bounds, excluded dates, clock changes</summary>
        <div className="mt-2 grid gap-3 sm:grid-cols-2">
          <Field label="From">{text("from", "2030-01-01T00:00:00Z")}</Field>
          <Field label="Until">{text("until", "2030-12-31T00:00:00Z")}</Field>
          <Field label="Excluded dates" hint="separated by commas">
            {text("exclude", "2030-12-25, 2031-01-01")}
          </Field>
          <Field label="Calendars" hint="separated by commas">
            {text("calendars", "holidays")}
          </Field>
          {draft.kind === "cron" ? (
            <>
              <Field label="If clocks skip the time">
                <Choice
                  value={draft.gap}
                  choose={(gap) => change({ gap })}
                  options={["after", "skip"]}
                />
              </Field>
              <Field label="If an hour comes twice">
                <Choice
                  value={draft.overlapClock}
                  choose={(overlapClock) => change({ overlapClock })}
                  options={["first", "second", "both"]}
                />
              </Field>
            </>
          ) : null}
        </div>
      </details>
    </fieldset>
  );
}

export function MonitorFields(props: Props) {
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <Field label="Wait for a check-in up to" hint="after the tick, or after its start">
        <TextField {...props} name="grace" placeholder="5m" />
      </Field>
      <Field label="Tags" hint="separated by commas">
        <TextField {...props} name="tags" placeholder="" />
      </Field>
      <AlertsField {...props} />
    </div>
  );
}

export function PolicyFields({ draft, change }: Props) {
  const text = (name: TextName, placeholder: string) => (
    <TextField draft={draft} change={change} name={name} placeholder={placeholder} />
  );
  return (
    <details open={draft.overlap !== "skip" || draft.missed !== "latest" || draft.alerts !== ""}>
      <summary className="text-xs text-muted">
        Policies: overlap, missed ticks, failures, routing, alerts
      </summary>
      <div className="mt-2 grid gap-3 sm:grid-cols-2">
        <Field label="While an earlier run is live">
          <select
            className="field"
            value={draft.overlap}
            onChange={(event) => change({ overlap: event.target.value })}
          >
            <option value="skip">skip the tick</option>
            <option value="queue">let one wait</option>
            <option value="allow">run both</option>
            <option value="replace">cancel the old one</option>
          </select>
        </Field>
        <Field label="Missed ticks">
          <select
            className="field"
            value={draft.missed}
            onChange={(event) => change({ missed: event.target.value })}
          >
            <option value="latest">run only the most recent one</option>
            <option value="all">run all, oldest first</option>
            <option value="skip">fire none</option>
          </select>
        </Field>
        {draft.missed === "skip" ? null : (
          <Field label="Only if missed by at most" hint="empty: any age">
            {text("within", "6h")}
          </Field>
        )}
        {draft.missed === "all" ? (
          <Field label="At most this many">{text("limit", "100")}</Field>
        ) : null}
        <Field
          label="After a failure wait"
          hint='a duration, or a range such as "20m..40m"; empty: no wait'
        >
          {text("afterFailure", "")}
        </Field>
        <Field label="On time up to" hint="a later tick counts as late">
          {text("grace", "30s")}
        </Field>
        <Field label="Queue" hint="empty: the job's default">
          {text("queue", "")}
        </Field>
        <Field label="Priority" hint="−100 to 100, empty: the job's default">
          {text("priority", "")}
        </Field>
        <Field label="Tags" hint="separated by commas">
          {text("tags", "")}
        </Field>
        <AlertsField draft={draft} change={change} />
      </div>
    </details>
  );
}

function AlertsField({ draft, change }: Props) {
  return (
    <div className="sm:col-span-2">
      <JsonField
        label="Alert rules for this schedule"
        hint='JSON such as {"stale": "30m", "silent": false}; false: no alerts; empty: the rules for everything'
        text={draft.alerts}
        onChange={(alerts) => change({ alerts })}
        rows={3}
      />
    </div>
  );
}

function TextField(props: Props & { readonly name: TextName; readonly placeholder: string }) {
  const { draft, change, name, placeholder } = props;
  return (
    <input
      className="field"
      value={draft[name]}
      placeholder={placeholder}
      onChange={(event) => change({ [name]: event.target.value })}
    />
  );
}

function Choice(props: {
  readonly value: string;
  readonly choose: (value: string) => void;
  readonly options: readonly string[];
}) {
  return (
    <select
      className="field"
      value={props.value}
      onChange={(event) => props.choose(event.target.value)}
    >
      <option value="">default</option>
      {props.options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
}
