// Lists the faults, each with a description. The plan draws their times and victims.

import type { Draw } from "../random.js";

/** Faults that hit the next store call of a process. */
export const CALL_FAULTS = [
  "crash-before-send",
  "crash-after-commit",
  "answer-lost",
  "not-sent",
  "answer-late",
  "sent-late",
  "sent-twice",
  "busy",
  "disk-full",
  "unexpected-error",
] as const;

/** Faults that hit a process, the network or the database itself. */
export const STATE_FAULTS = [
  "stop",
  "sleep",
  "block",
  "clock-offset",
  "clock-drift",
  "clock-step",
  "cut-off",
  "database-step",
  "database-restart",
  "blackout",
] as const;

export type FaultKind = (typeof CALL_FAULTS)[number] | (typeof STATE_FAULTS)[number];

export type Fault = {
  readonly id: number;
  /** From the start of the simulation. */
  readonly afterMs: number;
  readonly kind: FaultKind;
  /** Which process. */
  readonly place: number;
  /** Only calls of these verbs; any if there is none. */
  readonly verbs: readonly string[] | null;
  readonly ms: number;
};

const WORDS: { readonly [Kind in FaultKind]: (ms: number) => string } = {
  "crash-before-send": () => "crashes before its next call is sent",
  "crash-after-commit": () => "crashes after its next call was committed and before it hears of it",
  "answer-lost": () => "never gets the answer to its next call, which takes effect",
  "not-sent": () => "cannot send its next call",
  "answer-late": (ms) => `gets the answer to its next call ${ms} ms late`,
  "sent-late": (ms) => `has its next call take effect only after ${ms} ms`,
  "sent-twice": (ms) => `has its next call take effect twice, again after ${ms} ms`,
  busy: (ms) => `finds the file locked for its next call, about ${Math.ceil(ms / 3)} times`,
  "disk-full": () => "cannot commit its next call: the disk is full",
  "unexpected-error": () => "gets an error nobody foresaw from its next call",
  stop: (ms) => `stands still for ${ms} ms`,
  sleep: (ms) => `sleeps for ${ms} ms, its monotonic clock too`,
  block: (ms) => `has its event loop blocked for ${ms} ms`,
  "clock-offset": (ms) => `has a clock that is ${ms} ms off`,
  "clock-drift": (ms) => `has a clock that gains ${(ms / 1_000).toFixed(1)} % from now on`,
  "clock-step": (ms) => `has its clock stepped by ${ms} ms`,
  "cut-off": (ms) => `cannot reach the database for ${ms} ms`,
  "database-step": (ms) => `the database's clock steps by ${ms} ms`,
  "database-restart": (ms) => `the database is gone for ${ms} ms; what was under way is unknown`,
  blackout: (ms) => `all processes crash at once, and stay away for ${ms} ms`,
};

export function faultInWords({ kind, ms, verbs }: Fault, who: string): string {
  const only = verbs === null ? "" : ` (of ${verbs.join(", ")})`;
  const text = WORDS[kind](ms);
  const isOfAll = kind.startsWith("database") || kind === "blackout";
  return isOfAll ? text : `${who} ${text}${only}`;
}

/** Verbs that suffer most from a lost, late or doubled response; an exchange is a claim, a settlement, or both. */
const AIMED: readonly (readonly [number, readonly string[]])[] = [
  [4, ["settle"]],
  [4, ["claim"]],
  [2, ["leases.renew"]],
  [1, ["progress.write", "logs.append"]],
  [4, ["schedules.write"]],
  [2, ["enqueue.runs"]],
  [1, ["leases.markStarted"]],
  [6, ["commits.run"]],
  [2, ["commits.item"]],
  [1, ["items.store"]],
  [1, ["leases.state", "items.done"]],
  [1, ["claims.byToken"]],
  [1, ["leases.reclaim"]],
  [1, ["work.poll"]],
  [1, ["schedules.due", "schedules.states"]],
  [1, ["runs.cancel", "runs.retry", "leases.enforceCancels"]],
];

const WEIGHTS: readonly (readonly [number, FaultKind])[] = [
  [2, "crash-before-send"],
  [3, "crash-after-commit"],
  [6, "answer-lost"],
  [4, "not-sent"],
  [5, "answer-late"],
  [4, "sent-late"],
  [4, "sent-twice"],
  [2, "busy"],
  [1, "disk-full"],
  [1, "unexpected-error"],
  [5, "stop"],
  [1, "sleep"],
  [2, "block"],
  [2, "clock-offset"],
  [2, "clock-drift"],
  [2, "clock-step"],
  [2, "cut-off"],
  [1, "database-step"],
  [1, "database-restart"],
  [0.6, "blackout"],
];

/** Draws a subset of the faults with new weights, so that each seed tries something else. */
export function drawMix(draw: Draw): readonly (readonly [number, FaultKind])[] {
  const chosen = WEIGHTS.filter(() => draw.isTrue(0.75));
  return (chosen.length < 4 ? WEIGHTS : chosen).map(
    ([weight, kind]) => [weight * (0.2 + draw.next()), kind] as const,
  );
}

export function drawFault(
  draw: Draw,
  params: {
    readonly id: number;
    readonly mix: readonly (readonly [number, FaultKind])[];
    readonly afterMs: number;
    readonly placeCount: number;
    readonly leaseMs: number;
  },
): Fault {
  const kind = draw.weighted(params.mix);
  const isAimed = (CALL_FAULTS as readonly string[]).includes(kind) && draw.isTrue(0.6);
  return {
    id: params.id,
    afterMs: params.afterMs,
    kind,
    place: draw.whole(0, params.placeCount - 1),
    verbs: isAimed ? draw.weighted(AIMED) : null,
    ms: drawMs(draw, kind, params.leaseMs),
  };
}

function drawMs(draw: Draw, kind: FaultKind, leaseMs: number): number {
  const sign = draw.isTrue(0.5) ? 1 : -1;
  switch (kind) {
    case "answer-late":
    case "sent-late":
    case "sent-twice":
      return draw.logarithmic(5, 5 * leaseMs);
    case "stop":
    case "sleep":
      return draw.logarithmic(500, 5 * leaseMs);
    case "block":
      return draw.logarithmic(50, leaseMs);
    case "busy":
      return draw.logarithmic(5, 400);
    case "clock-drift":
      return sign * draw.whole(100, 5_000);
    case "clock-offset":
    case "clock-step":
      return sign * draw.logarithmic(1_000, 3_600_000);
    case "database-step":
      return sign * draw.logarithmic(500, 600_000);
    case "blackout":
      return draw.logarithmic(30_000, 600_000);
    case "cut-off":
    case "database-restart":
      return draw.logarithmic(500, 60_000);
    default:
      return 0;
  }
}
