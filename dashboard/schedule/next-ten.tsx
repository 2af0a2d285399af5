// Shows the next ten ticks in the zone that the reader chose, then in the schedule's own, with notes on clock changes.

import { useQuery } from "@tanstack/react-query";
import { call } from "../api/call.js";
import type { Schedule } from "../api/wire.js";
import { Panel, Waiting } from "../shared/panel.js";
import { useStillPicture } from "../shared/still.js";
import { Ago, titleOf } from "../shared/time.js";
import { timeText, useZone } from "../shared/zone.js";

export function NextTen({
  schedule,
  ask,
}: {
  readonly schedule: Schedule;
  readonly ask: (at: string) => void;
}) {
  const query = useQuery({
    queryKey: ["schedule", schedule.name, "preview", schedule.version, schedule.nextAt],
    queryFn: ({ signal }) =>
      call("preview", "GET /api/schedules/{name}/preview", {
        params: { name: schedule.name },
        query: { count: 10 },
        signal,
      }),
  });
  const zone = useZone();
  const { shown, still } = useStillPicture(query.data);
  const { ticks = [], notes = [] } = shown ?? {};
  return (
    <Panel
      title="Next ten"
      note={schedule.timezone === zone ? zone : `${zone}, then ${schedule.timezone}`}
    >
      {shown === undefined ? (
        <Waiting rows={5} />
      ) : ticks.length === 0 ? (
        <p className="text-muted">
          {schedule.every?.includes("..")
            ? "The next tick of a random interval is known when the last run has ended."
            : "No tick is left."}
        </p>
      ) : (
        <ol className="grid gap-px" {...still}>
          {ticks.map((at, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a row is a place; when a tick is over, its place shows the next.
            <li key={place}>
              <button
                type="button"
                onClick={() => ask(at)}
                title={titleOf(at, schedule.timezone)}
                className="flex w-full justify-between gap-2 rounded px-1.5 py-0.5 text-left hover:bg-sunken"
              >
                <span>
                  {timeText(at, zone, "full")}
                  {schedule.timezone === zone ? null : (
                    <span className="block text-xs text-muted">
                      {timeText(at, schedule.timezone, "full")}
                    </span>
                  )}
                </span>
                <span className="w-20 text-xs text-muted">
                  <Ago at={at} zone={schedule.timezone} />
                </span>
              </button>
            </li>
          ))}
        </ol>
      )}
      {notes.map((note) => (
        <p key={note} className="mt-2 rounded bg-late/14 px-2 py-1 text-xs text-late-ink">
          {note}
        </p>
      ))}
    </Panel>
  );
}
