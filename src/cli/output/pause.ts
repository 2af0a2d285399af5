// The pause of everything as lines for people: what is on, above whatever it holds up.

import type { Holdfast } from "../../holdfast.js";
import type { Pause } from "../../operations/pause.js";
import { type Colours, plain } from "../shell.js";
import { shortTime } from "./times.js";

export function pauseText({ since, by, note }: Pause): string {
  const who = by === null ? "" : ` by ${plain(by)}`;
  const why = note === null ? "" : ` (${plain(note)})`;
  return `since ${shortTime(since)}${who}${why}`;
}

/** A line to go before a page; empty where nothing is paused. */
function bannerOf(paused: Pause | null, colours: Colours): string {
  if (!paused) return "";
  const text = `Everything is paused ${pauseText(paused)}: nothing fires and nothing is claimed.`;
  return `${colours.yellow(text)}\n`;
}

/** A page with the banner before it. */
export async function underPause(
  holdfast: Holdfast,
  { text, document }: { readonly text: string; readonly document: object },
  colours: Colours,
): Promise<{ readonly text: string; readonly document: object }> {
  const pausedAll = await holdfast.paused();
  return { text: `${bannerOf(pausedAll, colours)}${text}`, document: { ...document, pausedAll } };
}
