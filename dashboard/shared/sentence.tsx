// Shows a sentence of the server: instants appear in the reader's zone, runs link to their pages, and instances have
// short names. All other text is unchanged.

import type { ReactNode } from "react";
import { Link } from "wouter";
import { shortId, shortInstance } from "./format.js";
import { Time } from "./time.js";

const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const DAY = "\\d{4}-\\d\\d-\\d\\d";
const CLOCK = "\\d\\d:\\d\\d(?::\\d\\d(?:\\.\\d+)?)?";
const PARTS = new RegExp(
  `(?<at>${DAY}T${CLOCK}(?:Z|[+-]\\d\\d:\\d\\d))|(?<day>${DAY}) (?<clock>${CLOCK}) UTC|(?<instance>[^\\s:]+:\\d+:${UUID})|(?<run>${UUID})`,
  "g",
);

export function Sentence(props: {
  readonly text: string;
  readonly style?: "full" | "short";
  /** The zone of the schedule in question. */
  readonly zone?: string;
}) {
  const { text, style = "short", zone } = props;
  const shown: ReactNode[] = [];
  let from = 0;
  for (const { 0: whole, index, groups = {} } of text.matchAll(PARTS)) {
    const { at = `${groups.day}T${groups.clock}Z`, instance, run } = groups;
    shown.push(text.slice(from, index));
    from = index + whole.length;
    if (run !== undefined)
      shown.push(
        <Link key={index} href={`/runs/${run}`} className="link font-mono text-[0.9em]" title={run}>
          {shortId(run)}
        </Link>,
      );
    else if (instance !== undefined)
      shown.push(
        <span key={index} title={instance}>
          {shortInstance(instance)}
        </span>,
      );
    else
      shown.push(
        <Time key={index} at={at} style={style} {...(zone === undefined ? {} : { zone })} />,
      );
  }
  return [...shown, text.slice(from)];
}
