// Removes acknowledged work that a failover lost from the history, and counts it. The remaining history must still
// keep every guarantee.

/** @typedef {import("./checks.mjs").History} History */

/**
 * @param {History} history
 * @returns {{ history: History, forgiven: Record<string, number> }}
 */
export function forgetLost(history) {
  const { tables, operations, effects } = history;
  const runs = new Set(tables.runs.map(({ id }) => id));
  const grants = new Set([
    ...tables.attempts.map(({ run, fence }) => `${run} ${fence}`),
    ...tables.outcomes.map(({ id, fence }) => `${id} ${fence}`),
  ]);
  const idsOf = (/** @type {import("./checks.mjs").Operation} */ { is, answer, runId }) =>
    [...[is === "answered" ? answer : []].flat(), { id: runId }]
      .map((each) => each?.id ?? each?.runId)
      .filter((id) => typeof id === "string");
  const isKept = (/** @type {import("./checks.mjs").Operation} */ operation) =>
    idsOf(operation).every((id) => runs.has(id));
  const isGranted = (/** @type {{ run: string, fence: number }} */ { run, fence }) =>
    grants.has(`${run} ${fence}`);
  const forgiven = {
    acknowledgedOperations: operations.filter((each) => !isKept(each)).length,
    effectsOfLostGrants: effects.filter((each) => !isGranted(each)).length,
  };
  return {
    history: {
      ...history,
      // A client did request the runs that still exist.
      operations: operations.map((each) =>
        isKept(each) ? each : { ...each, is: "unknown", answer: null, code: "", runId: "" },
      ),
      effects: effects.filter(isGranted),
    },
    forgiven,
  };
}
