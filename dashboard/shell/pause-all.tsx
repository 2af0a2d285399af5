// The switch that pauses everything: a banner on every page while it is on, and its button.

import { useQuery } from "@tanstack/react-query";
import { call } from "../api/call.js";
import { ActionButton } from "../shared/action.js";
import { Ago } from "../shared/time.js";
import { useMay } from "./me.js";

function usePause() {
  return useQuery({
    queryKey: ["pause"],
    queryFn: ({ signal }) => call("getPause", "GET /api/pause", { signal }),
  });
}

export function PausedLine() {
  const paused = usePause().data?.paused ?? null;
  const mayChange = useMay("admin");
  if (paused === null) return null;
  return (
    <div
      role="status"
      className="mb-4 flex flex-wrap items-center justify-between gap-2 rounded-lg border border-late/60 bg-late/14 px-4 py-2.5"
    >
      <p>
        <span className="font-medium">Everything is paused</span> since <Ago at={paused.since} />
        {paused.by === null ? "" : ` by ${paused.by}`}
        {paused.note === null ? "." : `: ${paused.note}`} Nothing fires and nothing is claimed.
      </p>
      {mayChange ? (
        <ActionButton
          label="Resume all"
          isSmall
          act={async () => {
            await call("resumeAll", "POST /api/resume", { body: {} });
            return "The global pause is lifted. Schedules and queues with their own pause stay paused.";
          }}
        />
      ) : null}
    </div>
  );
}

export function PauseAll() {
  const pause = usePause();
  const mayChange = useMay("admin");
  if (!mayChange || pause.data === undefined || pause.data.paused !== null) return null;
  return (
    <ActionButton
      label="Pause all"
      isSmall
      confirm={{
        title: "Pause everything?",
        summary:
          "No schedule fires and no run is claimed, on any instance, until it is resumed. Active runs go on. Ticks during the pause are recorded as skipped.",
        verb: "Pause everything",
        note: "Why? It is shown on every page.",
        isDangerous: true,
      }}
      act={async (note) => {
        await call("pauseAll", "POST /api/pause", { body: note === undefined ? {} : { note } });
        return "Everything is paused.";
      }}
    />
  );
}
