// The time zone of shown times: the reader's own or UTC, chosen once and remembered.

import { createContext, type ReactNode, use, useMemo, useState } from "react";
import { remember, remembered } from "./memory.js";

export type ZoneChoice = "local" | "utc";
type Zones = { readonly choice: ZoneChoice; readonly choose: (choice: ZoneChoice) => void };

const LOCAL = Intl.DateTimeFormat().resolvedOptions().timeZone;
const ZoneContext = createContext<Zones>({ choice: "local", choose: () => undefined });

export function ZoneProvider({ children }: { readonly children: ReactNode }) {
  const [choice, setChoice] = useState<ZoneChoice>(remembered("zone") === "utc" ? "utc" : "local");
  const zones = useMemo(
    () => ({
      choice,
      choose: (next: ZoneChoice) => {
        remember("zone", next);
        setChoice(next);
      },
    }),
    [choice],
  );
  return <ZoneContext value={zones}>{children}</ZoneContext>;
}

export function useZones(): Zones {
  return use(ZoneContext);
}

/** The name of the zone of shown times. */
export function useZone(): string {
  return useZones().choice === "utc" ? "UTC" : LOCAL;
}

export const LOCAL_ZONE = LOCAL;

const formats = new Map<string, Intl.DateTimeFormat>();

/** Which parts of an instant are shown. `seconds` is `short` with seconds. */
export type TimeStyle = "full" | "time" | "short" | "seconds" | "day";

/** The short style that distinguishes these instants: with seconds if one of them is not on a whole minute. */
export function styleFor(instants: readonly (string | null)[]): "short" | "seconds" {
  const isFine = instants.some((at) => at !== null && Date.parse(at) % 60_000 !== 0);
  return isFine ? "seconds" : "short";
}

function formatOf(zone: string, style: TimeStyle): Intl.DateTimeFormat {
  const key = `${zone} ${style}`;
  const known = formats.get(key);
  if (known) return known;
  const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  const day = { month: "short", day: "numeric" } as const;
  const options: Record<typeof style, Intl.DateTimeFormatOptions> = {
    full: { ...day, weekday: "short", year: "numeric", ...clock, second: "2-digit" },
    time: { ...clock, second: "2-digit" },
    short: { ...day, ...clock },
    seconds: { ...day, ...clock, second: "2-digit" },
    day: { ...day, weekday: "short" },
  };
  const made = new Intl.DateTimeFormat("en-GB", { ...options[style], timeZone: safeZone(zone) });
  formats.set(key, made);
  return made;
}

/** A zone that the server knows and this browser does not must not take the page down. */
function safeZone(zone: string): string {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return zone;
  } catch {
    return "UTC";
  }
}

export function timeText(
  at: number | string | Date,
  zone: string,
  style: TimeStyle = "short",
): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "no time at all" : formatOf(zone, style).format(date);
}

/** Hours, minutes and so on of an instant on the clock of a zone. */
export function clockOf(at: number, zone: string): Readonly<Record<string, number>> {
  const key = `${zone} parts`;
  let format = formats.get(key);
  if (!format) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: safeZone(zone),
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(key, format);
  }
  const parts = format.formatToParts(at).filter(({ type }) => type !== "literal");
  return Object.fromEntries(parts.map(({ type, value }) => [type, Number(value)]));
}
