// Names the outcomes of items: names that users choose for items that are done, and `failed`.

import { ConfigurationError } from "../../shared/errors.js";
import { requireName } from "../../shared/names.js";

export const OK_OUTCOME = "ok";
/** Only for items that threw: it marks a run as partial. */
export const FAILED_OUTCOME = "failed";
/** How many outcome names of their own remote workers may give to the items of a run. */
export const OUTCOMES_MAX = 100;

export function isChosenOutcome(outcome: string): boolean {
  return outcome !== OK_OUTCOME && outcome !== FAILED_OUTCOME;
}

/** Checks the outcome that a user's function returned. */
export function requireOutcome(value: unknown, key: string): string {
  const field = `the outcome of item "${key}"`;
  const outcome = requireName(value, field);
  if (outcome !== FAILED_OUTCOME) return outcome;
  throw new ConfigurationError([
    {
      field,
      message: `must not be "${FAILED_OUTCOME}", which counts items that threw; throw, or say for example "REFUSED"`,
    },
  ]);
}
