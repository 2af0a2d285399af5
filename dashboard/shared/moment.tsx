// An input for an instant, on the clock that times are shown in: the reader's own or UTC.

import { useZones } from "./zone.js";

/** The name of that clock beside an input. */
export function useClockName(): string {
  return useZones().choice === "utc" ? "UTC" : "your local time";
}

export function MomentInput(props: {
  /** Null: nothing is written there. */
  readonly at: string | null;
  /** Null: it was emptied, or is not whole yet. */
  readonly change: (at: string | null) => void;
  readonly className?: string;
  /** Only where no label is around it. */
  readonly label?: string;
  readonly hasSeconds?: boolean;
  readonly isRequired?: boolean;
}) {
  const { at, change, className = "", label, hasSeconds = false, isRequired = false } = props;
  const isUtc = useZones().choice === "utc";
  return (
    <input
      className={`field ${className}`}
      type="datetime-local"
      step={hasSeconds ? 1 : undefined}
      aria-label={label}
      required={isRequired}
      value={at === null ? "" : textOf(at, isUtc).slice(0, hasSeconds ? 19 : 16)}
      onChange={(event) => change(instantOf(event.target.value, isUtc))}
    />
  );
}

function textOf(instant: string, isUtc: boolean): string {
  const at = new Date(instant);
  if (Number.isNaN(at.getTime())) return "";
  const offsetMs = isUtc ? 0 : at.getTimezoneOffset() * 60_000;
  return new Date(at.getTime() - offsetMs).toISOString();
}

function instantOf(text: string, isUtc: boolean): string | null {
  const at = new Date(isUtc ? `${text}Z` : text);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}
