// An instant in the zone that the reader chose; its title shows it in every other zone.

import { useNow } from "../live/live.js";
import { relativeText } from "./format.js";
import { LOCAL_ZONE, type TimeStyle, timeText, useZone } from "./zone.js";

type TimeProps = {
  readonly at: string | null;
  /** The zone of its schedule. */
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

/** A relative time, such as "3 min ago"; it updates by itself. */
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
