// Why a pending run does not begin, in words, with instants as they came. Pure.

import type { Run } from "../api/wire.js";

type WaitingFor = NonNullable<Run["waitingFor"]>;

export function waitingWords(waiting: WaitingFor): string {
  const { reason, until, queue, note, limit, held, ahead, instances } = waiting;
  switch (reason) {
    case "time":
      return `It waits for its time: ${until}.`;
    case "schedule":
      return "It waits until the run of its schedule before it has ended.";
    case "paused_queue":
      return `Its queue ${queue} is paused${note ? `: ${note}` : ""}.`;
    case "concurrency":
      return `It waits for its limit: ${held} of ${limit} run now, ${ahead} go first.`;
    case "rate":
      return `It waits for its rate: the next may begin at ${until}, ${ahead} go first.`;
    case "worker":
      return instances === 0
        ? "No live instance knows its job: start one whose code declares it."
        : `It waits for a worker with room; ${instances} live ${instances === 1 ? "instance knows" : "instances know"} its job.`;
    case "paused_all":
      return "Everything is paused.";
    default:
      return `It waits: ${reason}.`;
  }
}
