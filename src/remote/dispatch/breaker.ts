// A circuit breaker as a pure state machine: whether a target is asked at all, given how it answered.
// Closed, everything passes; after so many failures in a row it opens, and nothing passes for a while;
// then one request goes as a probe, and its answer closes the circuit or opens it for longer.
// It knows no clock: the caller says what time it is, on whatever clock only moves forward.

export const OPENS_AFTER = 5;
export const OPEN_MS = 5_000;
export const OPEN_MAX_MS = 5 * 60_000;
const PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

export type Circuit =
  | { readonly state: "closed"; readonly failures: number }
  /** `openings`: how often in a row, so that each time lasts longer than the last. */
  | { readonly state: "open"; readonly untilMs: number; readonly openings: number }
  | { readonly state: "half_open"; readonly openings: number };

export const CLOSED: Circuit = { state: "closed", failures: 0 };

/** How many requests may pass now. */
export function roomOf(circuit: Circuit, nowMs: number): number {
  if (circuit.state === "closed") return Number.POSITIVE_INFINITY;
  return circuit.state === "open" && nowMs >= circuit.untilMs ? 1 : 0;
}

/** A request is about to be sent: through an open circuit whose time is over it goes as the probe. */
export function asked(circuit: Circuit): Circuit {
  return circuit.state === "open" ? { state: "half_open", openings: circuit.openings } : circuit;
}

/** The target is there, whatever it said. */
export function answered(circuit: Circuit): Circuit {
  // What was sent before it opened and is answered now says nothing of how the target is today.
  return circuit.state === "open" ? circuit : CLOSED;
}

/** The target could not be reached, did not answer, or said itself that it cannot. */
export function failed(circuit: Circuit, nowMs: number): Circuit {
  if (circuit.state === "open") return circuit;
  if (circuit.state === "half_open") return opened(circuit.openings + 1, nowMs);
  const failures = circuit.failures + 1;
  return failures >= OPENS_AFTER ? opened(1, nowMs) : { state: "closed", failures };
}

/** The probe ended without telling anything, as when its run was cancelled: the next one is the probe. */
export function withdrawn(circuit: Circuit, nowMs: number): Circuit {
  if (circuit.state !== "half_open") return circuit;
  return { state: "open", untilMs: nowMs, openings: circuit.openings };
}

/** How long a run that could not be delivered had better wait. */
export function pauseMs(circuit: Circuit, nowMs: number): number {
  switch (circuit.state) {
    case "closed":
      return Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** Math.max(0, circuit.failures - 1));
    case "open":
      return Math.max(PAUSE_MS, Math.ceil(circuit.untilMs - nowMs));
    case "half_open":
      return openMs(circuit.openings);
  }
}

function opened(openings: number, nowMs: number): Circuit {
  return { state: "open", untilMs: nowMs + openMs(openings), openings };
}

function openMs(openings: number): number {
  return Math.min(OPEN_MAX_MS, OPEN_MS * 2 ** Math.min(openings - 1, 20));
}
