// Says in words why a pending run has not begun, with instants as the server sent them. Pure.

import type { Run } from "../api/wire.js";

type WaitingFor = NonNullable<Run["waitingFor"]>;

export function waitingWords(waiting: WaitingFor): string {
  const { signal, key, run, reason, since, until, queue, note, limit, held, ahead, instances } =
    waiting;
  switch (reason) {
    case "time":
      return `It waits for its time: ${until}.`;
    case "sleep":
      return `It has slept since ${since}, until ${until}.`;
    case "signal":
      return `It waits for the signal ${signal} with the key ${key} since ${since}${until ? `, until ${until}` : ""}.`;
    case "run":
      return `It waits for the run ${run} that it called, since ${since}.`;
    case "schedule":
      return "It waits for the end of an earlier run of its schedule.";
    case "paused_queue":
      return `Its queue ${queue} is paused${note ? `: ${note}` : ""}.`;
    case "concurrency":
      return `It waits for its limit: ${held} of ${limit} are running, ${ahead} are ahead.`;
    case "rate":
      return `It waits for its rate limit: the next may begin at ${until}, ${ahead} are ahead.`;
    case "worker":
      return instances === 0
        ? "No live instance knows its job: start one whose code declares it."
        : `It waits for a worker with a free slot; ${instances} live ${instances === 1 ? "instance knows" : "instances know"} its job.`;
    case "paused":
      return "Everything is paused.";
    default:
      return `It waits: ${reason}.`;
  }
}
