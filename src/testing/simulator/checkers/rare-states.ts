// Rare states that a campaign must have reached, or its green means nothing.

export const SOMETIMES = {
  "takeover-from-the-living": "a run was taken from a holder that was alive, only silent",
  "takeover-from-the-dead": "a run was taken from a holder that had crashed",
  "stale-settle-refused": "a result came under an old fence and was refused",
  "lost-answer-of-claim": "the answer to a claim was lost after it had been committed",
  "lost-answer-of-settle": "the answer to a settlement was lost after it had been committed",
  "lost-answer-of-enqueue": "the answer to an enqueue was lost after it had been committed",
  "lost-answer-of-tick": "the answer to a fired tick was lost after it had been committed",
  "unsent-settle": "a settlement was not sent, and came again",
  "claim-read-back": "a claim whose answer was lost was read back by its token",
  "settle-repeated": "a settlement that had been applied came again and changed nothing",
  "tick-raced": "two tried to change one schedule, and one of them came too late",
  "completion-beaten-by-reaper": "a handler ended after its run had been taken away",
  "expired-lease-renewed": "a lease that had run out was renewed, as nobody had taken it",
  "progress-told": "a run told how far it is",
  "log-kept": "a log line was kept with its run",
  "stale-progress-refused": "progress came under an old fence and was refused",
  "dst-tick": "a tick lay at a change of the clocks",
  "poison-died": "a run that kills its process ran out of attempts",
  "suspect-claimed": "a run whose earlier holder fell silent was handed out alone",
  "gate-opened": "a run that waited for another of its schedule was let go",
  replaced: "a newer tick replaced a live run",
  "stuck-reset": "a schedule that nobody had evaluated was evaluated by itself",
  "tick-late": "a tick fired late, by the policy latest",
  "tick-catch-up": "a tick fired late, by the policy all",
  "tick-overlap": "a tick was skipped, as a run was live",
  "tick-queue-full": "a tick was skipped, as one was waiting already",
  "tick-after-failure": "a tick was skipped after a failure",
  "tick-paused": "ticks of a pause were recorded when it ended",
  "tick-nobody": "ticks were missed, as nobody was there",
  "tick-too-old": "ticks were missed, as they were too old",
  "tick-over-limit": "ticks were missed, as more than the limit were due",
  "tick-broken": "a tick was missed, as its schedule was broken",
  "schedule-broken": "a schedule was marked as broken",
  "schedule-ended": "a schedule had no ticks left",
  "schedule-recreated": "a deleted schedule was made again",
  "if-due-fired": "a trigger with ifDue fired a tick",
  "if-due-locked": "a trigger with ifDue met a live run",
  "trigger-locked": "a trigger met a live run of a schedule that skips",
  "delivery-repeated": "a delivery that came again answered with its first run",
  "calendar-changed": "a calendar was changed, and schedules that use it with it",
  "calendar-excluded": "a calendar left a tick out",
  "backfill-ran": "a backfill made a run",
  "key-deduplicated": "a key answered with the run that has it",
  "key-conflict": "a key was refused, as its run has another input",
  "cancel-pending": "a waiting run was cancelled",
  "cancel-obeyed": "a running run was cancelled and obeyed",
  "cancel-enforced": "a running run was cancelled and its fence was raised",
  "lock-taken-over": "a lock whose lease had run out was taken over",
  "lock-stale-release-refused": "a release came under an old fence and was refused",
  "lock-waiter-served": "a call that had waited for a lock got it",
  "timed-out": "an attempt ran for longer than its timeout",
  postponed: "a handler put its own run off",
  "retry-by-operator": "a run that had ended got one more attempt",
  "handed-back": "a run was handed back by an instance that stopped",
  "abandoned-at-stop": "a handler did not end when its instance stopped",
  "final-loss": "a run failed, as it was lost and must not be repeated",
  "final-loss-refunded": "a run that had not begun was lost and came back as it was",
  "unknown-job-waited": "a run waited for an instance that knows its job",
  "monitor-checked-in": "what runs elsewhere checked in for a tick",
  "monitor-began": "what runs elsewhere said that it began",
  "monitor-missed": "nobody checked in for a tick",
  "monitor-late": "a check-in came after its tick had been judged",
  "monitor-repeated": "a check-in that had been heard came again and changed nothing",
  "everything-paused": "everything was paused, and runs that were ready were left alone",
  "paused-queue-held": "runs of a paused queue were left alone",
  "batch-replayed": "a later attempt asked for its batch again and got the first answer",
  "batch-ended-by-reaper": "the last child of a batch was ended by the reaper",
  "batch-ended-by-cancel": "the last child of a batch was cancelled while it waited",
  "batch-met-ended-run": "a child of a batch had ended before, under its key",
  "child-retried-after-batch": "a child went on after what comes after its batch was made",
  "children-retried-together": "failed children were retried together",
  "limit-waited": "a run waited, as the limit of its key was reached",
  "limit-freed-by-reclaim":
    "what a lost run held of a limit came back when it was taken from its holder",
  "crash-after-commit": "a process crashed between a commit and its answer",
  "stop-beyond-lease": "a process stood still for longer than a lease",
  "instance-clock-back": "the clock of an instance stepped back",
  "instance-clock-forward": "the clock of an instance stepped forward",
  "database-clock-back": "the database's clock stepped back",
  "database-clock-forward": "the database's clock stepped forward",
  "database-restart": "the database was gone for a while",
  "item-replayed": "an attempt found an item that an earlier one had done",
  "lost-answer-of-commit": "the answer to a commit was lost after it had taken effect",
  "lost-commit": "the answer to a commit was lost, and it had not taken effect",
  "stale-commit-refused": "a commit came under an old fence and was rolled back",
  "remote-ran": "a worker elsewhere completed a run",
  "remote-claim-repeated": "a claim from elsewhere came again and got the same runs",
  "remote-end-repeated": "an end was told again from elsewhere and was acknowledged again",
  "remote-late-refused": "a worker elsewhere came too late with its result and was refused",
  "remote-lost-told": "a worker elsewhere heard by its heartbeat that a run was no longer its own",
  "remote-cancel-told": "a worker elsewhere heard by its heartbeat that a run was cancelled",
  "remote-other-refused": "an answer under the fence of another run was refused",
  "remote-taken-over": "a run was taken from a worker elsewhere that was silent",
  "dispatch-done": "a target answered that it was done",
  "dispatch-called-back": "a target went on by itself and called back when it was done",
  "dispatch-failed": "a target answered that it failed",
  "dispatch-unknown": "a target was cut off or hung, so that nobody knew what it had done",
  "dispatch-undelivered": "a target could not be reached, and the run was handed back",
  "dispatch-late-refused": "a target called back too late and was refused",
  "circuit-opened": "a target failed so often that it was left alone for a while",
  "circuit-closed": "a target that had been left alone answered again",
  "pass-fired": "a pass that an outside cron called for fired a tick",
  "pass-executed": "a pass that an outside cron called for executed a run",
  "sent-twice": "a call took effect twice",
  "file-busy": "the file was locked by somebody else",
  "disk-full": "a commit failed, as the disk was full",
} as const;

export type Sometimes = keyof typeof SOMETIMES;
export type Counters = Record<Sometimes, number>;

export function noCounters(): Counters {
  const names = Object.keys(SOMETIMES) as Sometimes[];
  return Object.fromEntries(names.map((name) => [name, 0])) as Counters;
}

/** Met by one seed of 25 or more, but by no more than one of six: counted over 110 seeds. */
const SELDOM: readonly Sometimes[] = [
  "completion-beaten-by-reaper",
  "tick-overlap",
  "tick-queue-full",
  "tick-after-failure",
  "tick-nobody",
  "lock-stale-release-refused",
  "abandoned-at-stop",
  "final-loss-refunded",
  "batch-ended-by-reaper",
  "batch-ended-by-cancel",
  "batch-met-ended-run",
  "limit-waited",
  "limit-freed-by-reclaim",
  "lost-answer-of-commit",
  "lost-commit",
  "remote-cancel-told",
  "pass-executed",
];

/** Met by fewer still. */
const RARE: readonly Sometimes[] = [
  "stale-progress-refused",
  "tick-too-old",
  "tick-over-limit",
  "stale-commit-refused",
  "pass-fired",
];

/** Met by one of a thousand: the database's clock has to jump over more than five minutes and a tick. */
const RAREST: readonly Sometimes[] = ["stuck-reset"];

/** How many seeds must have met a state at least once: so many that ten or more of them are expected to. */
export function seedsToSee(name: Sometimes): number {
  if (RAREST.includes(name)) return 10_000;
  if (RARE.includes(name)) return 1_000;
  return SELDOM.includes(name) ? 300 : 100;
}
