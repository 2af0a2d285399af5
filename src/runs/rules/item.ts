// How items turn out: names that users choose for those that are done, and the one that is ours.

import { ConfigurationError } from "../../shared/errors.js";
import { requireName } from "../../shared/names.js";

export const OK_OUTCOME = "ok";
/** Only what failed is called so: by this name a run is known to be partial. */
export const FAILED_OUTCOME = "failed";

/** The name that a user's function gave to how an item turned out. */
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
