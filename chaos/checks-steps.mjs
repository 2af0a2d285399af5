// Checks steps, signals and calls in the history of a round: each step is stored once and not done again afterwards, each signal
// that was acknowledged in time is received, each call made one run.

import { Finder, groupBy } from "./findings.mjs";

/** @typedef {import("./tables.mjs").Row} Row */

const COMPLETED = 1;
const STEPS = ["first", "beside", "last"];

/**
 * @param {import("./checks.mjs").History} history
 * @param {Map<string, import("./checks.mjs").RunFacts>} facts
 */
export function judgeSteps({ effects, operations, tables }, facts) {
  const found = new Finder();
  const stepsOf = groupBy(tables.steps, ({ run }) => run);
  const childrenOf = groupBy(
    tables.runs.filter(({ parent }) => parent !== null),
    ({ parent }) => parent,
  );
  /** The fences under which a step was done, in their order. @type {Map<string, number[]>} */
  const done = new Map();
  for (const { what, run, fence } of effects)
    if (what.startsWith("step:")) {
      const name = `${run} ${what.slice("step:".length)}`;
      done.set(name, [...(done.get(name) ?? []), fence]);
    }
  for (const [run, steps] of stepsOf)
    for (const { name, fence, value } of steps) {
      if (!STEPS.includes(name)) continue;
      const fences = done.get(`${run} ${name}`) ?? [];
      if (Number(value) !== fence || !fences.includes(fence))
        found.add("W", `Step ${name} of run ${run} is stored under ${fence} as ${value}.`);
      if (fences.some((each) => each > fence) || fences.length !== new Set(fences).size)
        found.add("W", `Step ${name} of run ${run}, stored under ${fence}: done under ${fences}.`);
    }
  for (const { run, outcome } of facts.values()) {
    if (run.job !== "journey") continue;
    const steps = new Map((stepsOf.get(run.id) ?? []).map((step) => [step.name, step]));
    judgeJourney(found, { id: run.id, outcome, steps });
    const children = childrenOf.get(run.id) ?? [];
    const child = steps.get("called")?.child;
    if (children.length > 1 || (child && children[0]?.id !== child))
      found.add("W", `Run ${run.id} called one run and made ${children.length}.`);
  }
  judgeSignals(found, { operations, signals: tables.signals, stepsOf });
  return found.all;
}

/** @param {Finder} found @param {{ id: string, outcome: Row | null, steps: Map<string, Row> }} journey */
function judgeJourney(found, { id, outcome, steps }) {
  if (outcome?.status !== COMPLETED) return;
  const result = JSON.parse(outcome.result ?? "null");
  for (const name of STEPS)
    if (result?.steps?.[name] !== Number(steps.get(name)?.value))
      found.add("W", `Run ${id} received ${JSON.stringify(result?.steps)}; ${name} is another.`);
  const got = JSON.parse(steps.get("go")?.value ?? "null")?.value ?? null;
  if (result?.steps?.got !== got)
    found.add("W", `Run ${id} received ${result?.steps?.got} as signal; ${got} is stored.`);
}

/**
 * @param {Finder} found
 * @param {{ operations: readonly any[], signals: readonly Row[], stepsOf: Map<string, Row[]> }} history
 */
function judgeSignals(found, { operations, signals, stepsOf }) {
  const sent = new Map(signals.map((signal) => [signal.key, signal]));
  for (const { op, verb, is, key } of operations) {
    if (verb !== "signal" || is !== "answered") continue;
    const stored = sent.get(key);
    if (!stored) {
      found.add("W", `The signal of ${op} was acknowledged, but is gone.`);
      continue;
    }
    const wait = stepsOf.get(key)?.find(({ name }) => name === "go");
    // A wait that timed out has ended at its deadline.
    if (wait && wait.value === null && stored.at <= wait.ended_at)
      found.add("W", `Run ${key} was told that no signal came by ${wait.ended_at}; one did.`);
  }
}
