// Does the work of a step in a transaction, `ctx.step(name, fn, { tx: true })`: what `fn` writes in it and the step's value
// are one commit. A lost reply to the commit is read back before anything is done again.

import { LeaseLostError, OutcomeUnknownError } from "../../shared/errors.js";
import { encodeStep } from "../../shared/json.js";
import type { Clock } from "../../shared/ports.js";
import { retryWhileUnavailable } from "../../shared/retry-while-unavailable.js";
import type { NewStep } from "../../store/steps.js";
import type { Store } from "../../store/store.js";
import type { Emit } from "../../telemetry/log.js";
import type { AttemptView } from "../attempt-view.js";
import { workOf } from "./commit.js";
import type { StepTry } from "./step-journal.js";

type Stored = { readonly no: number; readonly value: string };

export async function transactStep(params: {
  readonly store: Store;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly attempt: AttemptView;
  readonly fn: (tx: unknown) => unknown;
  readonly step: StepTry;
}): Promise<Stored> {
  const { store, clock, emit, attempt, fn, step } = params;
  const { name, tries, startedMs } = step;
  const { run, claim } = attempt;
  const grant = { id: run.id, fence: claim.fence };
  const work = workOf({
    ...{ verb: "ctx.step", fn, attempt, clock, emit, isSync: store.engine === "sqlite" },
    make: (value: unknown): NewStep => ({
      ...{ name, tries, value: encodeStep(name, value) },
      ranMs: clock.monotonicMs() - startedMs,
    }),
  });
  let no: number | "stale";
  try {
    no = await store.commits.step({
      ...{ ...grant, on: null, generation: run.extraAttempts },
      ...{ timeoutMs: claim.policy.timeoutMs, work: work.run },
    });
  } catch (error) {
    if (work.thrown) throw work.thrown.error;
    if (!work.made || !(error instanceof OutcomeUnknownError)) throw error;
    return readBack(params, error);
  }
  if (no === "stale" || !work.made) throw new LeaseLostError(grant.id, grant.fence);
  return { no, value: work.made.what.value };
}

/** Whether the transaction has stored its step. The state of the lease is read first: a commit counts only while it is held. */
async function readBack(
  { store, clock, attempt, step }: Parameters<typeof transactStep>[0],
  error: OutcomeUnknownError,
): Promise<Stored> {
  const { run, claim } = attempt;
  const grant = { id: run.id, fence: claim.fence };
  const state = await retryWhileUnavailable(clock, () => store.leases.state(grant));
  const asked = { id: run.id, names: [step.name] };
  const [stored] = await retryWhileUnavailable(clock, () => store.steps.named(asked));
  if (stored?.value) return { no: stored.no, value: stored.value };
  if (state !== "held") throw new LeaseLostError(run.id, claim.fence);
  throw error.cause ?? error;
}
