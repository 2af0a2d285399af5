// An instant on the page: as the reader chose to see it, with every other way to see it in its title.

import { useNow } from "../live/live.js";
import { relativeText } from "./format.js";
import { LOCAL_ZONE, type TimeStyle, timeText, useZone } from "./zone.js";

type TimeProps = {
  readonly at: string | null;
  /** The zone of the schedule that it belongs to. */
  readonly zone?: string;
  readonly style?: TimeStyle;
  readonly none?: string;
};

export function Time({ at, zone, style = "short", none = "–" }: TimeProps) {
  const shown = useZone();
  if (at === null) return <span className="text-muted">{none}</span>;
  return (
    <time dateTime={at} title={titleOf(at, zone)} className="whitespace-nowrap">
      {timeText(at, shown, style)}
    </time>
  );
}

/** How long ago, or in how long; goes on by itself. */
export function Ago({ at, zone, none = "–" }: Pick<TimeProps, "at" | "zone" | "none">) {
  const now = useNow();
  if (at === null) return <span className="text-muted">{none}</span>;
  return (
    <time dateTime={at} title={titleOf(at, zone)} className="whitespace-nowrap">
      {relativeText(Date.parse(at), now)}
    </time>
  );
}

export function titleOf(at: string, zone?: string): string {
  const zones = [...new Set([LOCAL_ZONE, "UTC", ...(zone === undefined ? [] : [zone])])];
  return zones.map((each) => `${timeText(at, each, "full")} ${each}`).join("\n");
}
