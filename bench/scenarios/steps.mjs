// How fast steps of runs are stored, and how fast runs that sleep go on.

import { withProcesses } from "../processes.mjs";

const ROUNDS = 5;

function stepScenario({ name, title, ask }) {
  return {
    name,
    title,
    engines: ["postgres"],
    isFor: ({ steps }) => steps !== undefined,
    unit: name === "resumptions" ? "resumptions/s" : "steps/s",
    primary: "perSecond",
    async measure({ contestant, places, sizes }) {
      const place = await places.fresh(contestant, {});
      try {
        return await withProcesses(contestant, 1, async (process) => {
          await process.ask("openSteps", { url: place.url });
          return ask(process, sizes);
        });
      } finally {
        await place.drop();
      }
    },
  };
}

const storing = (callers) => (process, sizes) =>
  process.ask("stepsFor", { callers, warmMs: sizes.enqueueMs / 2, ms: sizes.enqueueMs });

export const stepScenarios = [
  stepScenario({ name: "steps-1", title: "steps of runs, one after the other", ask: storing(1) }),
  stepScenario({ name: "steps-16", title: "steps of 16 runs at the same time", ask: storing(16) }),
  stepScenario({
    name: "resumptions",
    title: `runs that sleep ${ROUNDS} times, a millisecond each`,
    ask: (process, sizes) => process.ask("resume", { runs: sizes.resumed, rounds: ROUNDS }),
  }),
];
