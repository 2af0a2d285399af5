// Decides for the dispatcher whether a target gets requests: a circuit breaker as a pure state machine. Closed, all requests
// pass. After several failures in a row it opens, and none pass for a while. Then one request goes as a probe, and its
// response closes the circuit or opens it for longer. The caller passes the time, from a clock that only moves forward.

export const OPENS_AFTER = 5;
export const OPEN_MS = 5_000;
export const OPEN_MAX_MS = 5 * 60_000;
const PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

export type Circuit =
  | { readonly state: "closed"; readonly failures: number }
  /** `openings`: how often in a row; each opening lasts longer than the last. */
  | { readonly state: "open"; readonly untilMs: number; readonly openings: number }
  | { readonly state: "half_open"; readonly openings: number };

export const CLOSED: Circuit = { state: "closed", failures: 0 };

/** How many requests may pass now. */
export function roomOf(circuit: Circuit, nowMs: number): number {
  if (circuit.state === "closed") return Number.POSITIVE_INFINITY;
  return circuit.state === "open" && nowMs >= circuit.untilMs ? 1 : 0;
}

/** A request is about to be sent; through an open circuit whose time is over, it is the probe. */
export function sent(circuit: Circuit): Circuit {
  return circuit.state === "open" ? { state: "half_open", openings: circuit.openings } : circuit;
}

/** The target has responded, with any status. */
export function responded(circuit: Circuit): Circuit {
  // A late response to a request from before the opening does not show that the target is healthy now.
  return circuit.state === "open" ? circuit : CLOSED;
}

/** The target was not reached, did not respond, or reported that it is unavailable. */
export function failed(circuit: Circuit, nowMs: number): Circuit {
  if (circuit.state === "open") return circuit;
  if (circuit.state === "half_open") return opened(circuit.openings + 1, nowMs);
  const failures = circuit.failures + 1;
  return failures >= OPENS_AFTER ? opened(1, nowMs) : { state: "closed", failures };
}

/** The probe was inconclusive, for example because its run was cancelled: the next request is the probe. */
export function withdrawn(circuit: Circuit, nowMs: number): Circuit {
  if (circuit.state !== "half_open") return circuit;
  return { state: "open", untilMs: nowMs, openings: circuit.openings };
}

/** How long a run that could not be delivered should wait. */
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
