// Keeps the steps and waits of runs that remote workers hold. Those of earlier executions come with the claim; a worker
// stores finished steps, begins waits and suspends its run under its fence. Every call may be repeated.

import type { RunId } from "../runs/rules/run.js";
import { changeOf, STEPS_MAX, type StepAsk, type StepKind } from "../runs/rules/steps.js";
import {
  ConfigurationError,
  LeaseLostError,
  SignalTakenError,
  StepChangedError,
  StepsTooManyError,
} from "../shared/errors.js";
import type { StoredError } from "../shared/failure.js";
import { encodeStep } from "../shared/json.js";
import type { Ports } from "../shared/ports.js";
import type { ClaimedRun, Grant, HeldRun } from "../store/claims.js";
import type { Collected, NewWait, StepRecord, WaitRecord } from "../store/steps.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import { factsOf } from "../worker/completer.js";
import type { FanOut } from "../worker/handler/fan-out.js";
import { firstEnd } from "../worker/handler/step-journal.js";
import {
  type CallOptions,
  readCall,
  readSleep,
  readWaitFor,
  requireStepName,
  type SleepOptions,
  type WaitForOptions,
} from "../worker/handler/step-options.js";
import { type RemoteError, toStoredError } from "./remote-error.js";

/** A step, sleep, signal or call that has ended. */
export type RemoteStep = {
  readonly name: string;
  /** Steps have ended in the order of their numbers. */
  readonly no: number;
  readonly kind: StepKind;
  /** A signal's is `{ value, at }`; null after its timeout. */
  readonly value: unknown;
  /** Why a called run has no result. */
  readonly error: {
    readonly status: "failed" | "cancelled";
    readonly error: StoredError | null;
  } | null;
  readonly signal: string | null;
  /** The key of a signal, or the job of a call. */
  readonly key: string | null;
  readonly run: RunId | null;
};

export type RemoteWait = {
  readonly name: string;
  readonly kind: WaitRecord["kind"];
  /** Until its deadline; null: it has none. */
  readonly leftMs: number | null;
  readonly signal: string | null;
  readonly key: string | null;
  readonly run: RunId | null;
  /** How often a step was tried that waits for its next try. */
  readonly tries: number;
};

/** The stored steps and open waits of a run. */
export type RemoteSteps = {
  readonly steps: readonly RemoteStep[];
  readonly waits: readonly RemoteWait[];
  /** Further steps have to be asked for, after the number of the last one. */
  readonly hasMoreSteps: boolean;
};

export type RemoteNewStep = {
  readonly name: string;
  readonly value?: unknown;
  readonly tries?: number;
  readonly durationMs?: number;
};

/** A wait that begins; the options are those of `ctx.sleep`, `ctx.waitFor` and `ctx.call`. */
export type RemoteNewWait =
  | ({ readonly kind: "sleep"; readonly time: number | string | Date } & SleepOptions)
  | ({ readonly kind: "signal"; readonly signal: string } & WaitForOptions)
  | ({ readonly kind: "run"; readonly job: string; readonly input?: unknown } & CallOptions)
  | {
      readonly kind: "retry";
      readonly name: string;
      readonly delayMs: number;
      readonly tries: number;
      readonly error?: RemoteError;
    };

export type RemoteSuspension = {
  readonly state: "held" | "suspended";
  /** Until the run is due again; null: only a signal or the end of a called run wakes it. */
  readonly wakeInMs: number | null;
  readonly waits: readonly RemoteWait[];
};

/** So many waits of a run that a remote worker holds may be open at once: each claim and each page has all of them. */
const WAITS_MAX = 1_000;
/** With the claim or a dispatch go so many characters of values; with a page of its own so many. */
const FIRST_CHARS = 128 * 1024;
const PAGE_CHARS = 4 * 1024 * 1024;
export const NO_STEPS: RemoteSteps = { steps: [], waits: [], hasMoreSteps: false };

type Params = {
  readonly ports: Ports;
  readonly emit: Emit;
  readonly fanOutOf: (store: Store) => Pick<FanOut, "call">;
  /** A run sleeps, or is due again. */
  readonly onSuspended: () => void;
};

export class RemoteStepKeeper {
  readonly #params: Params;

  constructor(params: Params) {
    this.#params = params;
  }

  /** Stores finished steps. A step that is stored already keeps its value. */
  async finish({ store, held, grant }: OfRun, steps: readonly RemoteNewStep[]) {
    if (steps.length === 0) return [];
    await requireRoom(store, grant.id, steps.length);
    const rows = steps.map(({ name, value = null, tries = 1, durationMs = 0 }) => ({
      ...{ name: stored(name), value: encodeStep(name, value), tries, ranMs: durationMs },
    }));
    refuseRepeated(names(rows));
    const open = await store.steps.waits(grant.id);
    const ended = await store.steps.named({ id: grant.id, names: names(rows) });
    for (const { name } of rows) refuseChange(name, { kind: "step" }, { open, ended });
    const numbers = await store.steps.finish({ ...grant, steps: rows, ...generationOf(held) });
    if (numbers === "stale") throw new LeaseLostError(grant.id, grant.fence);
    return rows.map(({ name }, at) => ({ name, no: numbers[at] as number }));
  }

  /** Records the ends of waits that are over, and returns what is stored after this number. */
  async after({ store, held, grant }: OfRun, after: number): Promise<RemoteSteps> {
    const collected = await store.steps.collect({ ...grant, ...generationOf(held) });
    if (collected === "stale") throw new LeaseLostError(grant.id, grant.fence);
    return pageOf(store, grant.id, { collected, after, chars: PAGE_CHARS, least: 1 });
  }

  /** Begins waits. One that is there already stays as it is; one that has ended is not begun again. */
  async begin(of: OfRun, waits: readonly RemoteNewWait[]): Promise<readonly RemoteWait[]> {
    const { store, held, grant } = of;
    const [run] = held.claim.runs as [ClaimedRun];
    const asked = waits.map((wait) => readWait(wait, run));
    const open = await store.steps.waits(grant.id);
    const ended = await store.steps.named({ id: grant.id, names: names(asked) });
    const fresh = asked.filter(({ name, ask }) => {
      const stored = { open, ended };
      const isKnown = refuseChange(name, ask, stored);
      return !isKnown || open.some((each) => each.name === name && each.kind === "retry");
    });
    await requireRoom(store, grant.id, fresh.length);
    requireFewOpen(open, fresh);
    await refuseTaken(store, grant.id, fresh);
    const plain = fresh.flatMap(({ wait }) => (wait ? [wait] : []));
    let now = await this.#began(of, plain);
    for (const { name, call } of fresh) if (call) now = await this.#call(of, name, call);
    return now.waits.map((wait) => toRemoteWait(wait, now.now));
  }

  async #began({ store, held, grant }: OfRun, waits: readonly NewWait[]) {
    const begun = await store.steps.wait({ ...grant, waits, ...generationOf(held) });
    if (begun === "stale") throw new LeaseLostError(grant.id, grant.fence);
    return begun;
  }

  async #call({ store, held, grant }: OfRun, name: string, { isLeft, ...asked }: AskedCall) {
    const how = { ...generationOf(held), isLeft };
    const make = await this.#params.fanOutOf(store).call(grant, asked, how);
    const begun = await make(name);
    if (begun === "stale") throw new LeaseLostError(grant.id, grant.fence);
    return begun;
  }

  /** Lets the run sleep until the first of its waits ends. `retries`: the steps that wait for their next try. */
  async suspend(
    { store, held, grant }: OfRun,
    retries: readonly string[],
  ): Promise<{ readonly wakeInMs: number | null }> {
    const [run] = held.claim.runs as [ClaimedRun];
    const { mode, schedule, batch } = run;
    const suspended = await store.steps.suspend({
      ...{ ...grant, mode, schedule, batch, isLimited: held.claim.isLimited },
      ...{ holder: held.holder, retries, ranMs: held.heldMs },
      random: this.#params.ports.random.next(),
    });
    if (suspended.result === "no_wait") {
      const message = 'must have one that is open, such as { kind: "sleep", time: "1h" }';
      throw new ConfigurationError([{ field: "waits", message }]);
    }
    if (suspended.result !== "suspended") throw new LeaseLostError(grant.id, grant.fence);
    const { wakeInMs } = suspended;
    this.#params.emit("run.suspended", { ...factsOf({ claim: held.claim, run }), wakeInMs });
    this.#params.onSuspended();
    return { wakeInMs };
  }

  /** Whether this fence has been suspended before, and the reply was lost. */
  async wasSuspended(store: Store, grant: Grant): Promise<{ wakeInMs: number | null } | null> {
    const nothing = { mode: "enqueued", schedule: null, batch: null, isLimited: false } as const;
    const suspended = await store.steps.suspend({
      ...grant,
      ...nothing,
      holder: 0,
      ranMs: 0,
      random: 0,
    });
    return suspended.result === "suspended" ? { wakeInMs: suspended.wakeInMs } : null;
  }
}

/**
 * The steps and waits that earlier executions stored of a run that was just claimed, with the ends of waits that are over.
 * `wokenAt`: when the first of them ended; null: nothing woke it, or it is lost.
 */
export async function claimedSteps(
  store: Store,
  grant: Grant,
  run: ClaimedRun,
): Promise<RemoteSteps & { readonly wokenAt: number | null }> {
  const collected = await store.steps.collect({ ...grant, generation: run.extraAttempts });
  if (collected === "stale") return { ...NO_STEPS, wokenAt: null };
  const wokenAt = firstEnd(collected);
  // A claim may have a hundred runs, and a service takes a dispatch of 2 MiB.
  const isLong = JSON.stringify(collected.waits).length > FIRST_CHARS;
  if (isLong) return { ...NO_STEPS, hasMoreSteps: true, wokenAt };
  const asked = { collected, after: 0, chars: FIRST_CHARS, least: 0 };
  return { ...(await pageOf(store, grant.id, asked)), wokenAt };
}

async function pageOf(
  store: Store,
  id: RunId,
  asked: {
    readonly collected: Collected;
    readonly after: number;
    readonly chars: number;
    readonly least: number;
  },
): Promise<RemoteSteps> {
  const { collected, after, chars, least } = asked;
  const page = await store.steps.list({ id, after });
  const shown: RemoteStep[] = [];
  let left = chars;
  for (const record of page.steps) {
    left -= (record.value?.length ?? 0) + (record.error?.length ?? 0);
    if (left < 0 && shown.length >= least) break;
    shown.push(toRemoteStep(record));
  }
  const waits = collected.waits.map((wait) => toRemoteWait(wait, collected.now));
  return { steps: shown, waits, hasMoreSteps: !page.isAll || shown.length < page.steps.length };
}

/** A run that a remote worker holds. */
type OfRun = { readonly store: Store; readonly held: HeldRun; readonly grant: Grant };

type AskedCall = {
  readonly job: string;
  readonly input: unknown;
  readonly options: CallOptions;
  readonly isLeft: boolean;
};

type AskedWait = {
  readonly name: string;
  readonly ask: StepAsk;
  readonly wait?: NewWait;
  readonly call?: AskedCall;
};

function readWait(given: RemoteNewWait, run: ClaimedRun): AskedWait {
  switch (given.kind) {
    case "sleep": {
      const { kind, time, ...options } = given;
      const { name, ...wait } = readSleep(time, { ...options, name: plain(options.name) });
      const named = given.name ?? name;
      return { name: named, ask: { kind }, wait: { ...wait, name: named, kind } };
    }
    case "signal": {
      const { kind, signal, ...options } = given;
      const read = readWaitFor(signal, { ...options, name: plain(options.name) }, { run });
      const wait = { ...read, name: given.name ?? read.name, kind, signal };
      return { name: wait.name, ask: { kind, signal, key: wait.key }, wait };
    }
    case "run": {
      const { kind, job, input = null, ...options } = given;
      const read = readCall(job, { ...options, name: plain(options.name) });
      const call = { job, input, options: read.enqueue, isLeft: read.isLeft };
      return { name: given.name ?? read.name, ask: { kind, key: job }, call };
    }
    case "retry": {
      const { kind, delayMs, tries, error } = given;
      const failure = error === undefined ? null : JSON.stringify(toStoredError(error));
      const name = stored(given.name);
      return { name, ask: { kind: "step" }, wait: { name, kind, delayMs, tries, error: failure } };
    }
  }
}

/** The client numbers names that are used again, as `ctx` does: "study#2". */
function plain(name: string | undefined): string | undefined {
  return name?.replace(/#[1-9]\d{0,4}$/, "");
}

function stored(name: string): string {
  requireStepName(plain(name), "name");
  return name;
}

function refuseRepeated(all: readonly string[]): void {
  const at = all.findIndex((name, place) => all.indexOf(name) !== place);
  if (at === -1) return;
  const message = `repeats "${all[at]}"; each step of a run has a name of its own, such as "${all[at]}#2"`;
  throw new ConfigurationError([{ field: `steps[${at}].name`, message }]);
}

function names(of: readonly { readonly name: string }[]): string[] {
  return of.map(({ name }) => name);
}

function generationOf({ claim }: HeldRun): { readonly generation: number } {
  return { generation: (claim.runs[0] as ClaimedRun).extraAttempts };
}

/** Whether something is stored under this name; throws if that is something else. */
function refuseChange(
  name: string,
  ask: StepAsk,
  { open, ended }: { open: readonly WaitRecord[]; ended: readonly StepRecord[] },
): boolean {
  const found = [...ended, ...open].find((each) => each.name === name);
  if (!found) return false;
  const kind = found.kind === "retry" ? "step" : found.kind;
  const change = changeOf({ kind, signal: found.signal, key: found.key }, ask);
  if (change) throw new StepChangedError(name, change.stored, change.asked);
  return true;
}

async function requireRoom(store: Store, id: RunId, more: number): Promise<void> {
  if (more > 0 && (await store.steps.count(id)) + more > STEPS_MAX)
    throw new StepsTooManyError(id, STEPS_MAX);
}

function requireFewOpen(open: readonly WaitRecord[], fresh: readonly AskedWait[]): void {
  const all = new Set([...names(open), ...names(fresh)]);
  if (all.size <= WAITS_MAX) return;
  const message = `a run of a remote worker has at most ${WAITS_MAX} open waits`;
  throw new ConfigurationError([{ field: "waits", message }]);
}

/** A run has one value of a signal. */
async function refuseTaken(store: Store, id: RunId, fresh: readonly AskedWait[]): Promise<void> {
  for (const { ask } of fresh) {
    if (ask.kind !== "signal") continue;
    const { signal, key } = { signal: String(ask.signal), key: String(ask.key) };
    if (await store.steps.hasReceived({ id, signal, key })) throw new SignalTakenError(signal, key);
  }
}

function toRemoteWait(wait: WaitRecord, now: number): RemoteWait {
  const { name, kind, until, signal, key, child, tries } = wait;
  const leftMs = until === null ? null : Math.max(0, until - now);
  return { name, kind, leftMs, signal, key, run: child, tries };
}

function toRemoteStep(record: StepRecord): RemoteStep {
  const { name, no, kind, signal, key, child } = record;
  return {
    name,
    no,
    kind,
    value: readValue(record),
    error: readError(record),
    signal,
    key,
    run: child,
  };
}

function readValue({ kind, value }: StepRecord): unknown {
  if (value === null) return null;
  const read: unknown = JSON.parse(value);
  if (kind !== "signal") return read;
  const { value: sent, at } = read as { readonly value: unknown; readonly at: number };
  return { value: sent, at: new Date(at) };
}

function readError({ error }: StepRecord): RemoteStep["error"] {
  if (error === null) return null;
  const ended = JSON.parse(error) as { readonly status: number; readonly error: string | null };
  const why = ended.error === null ? null : (JSON.parse(ended.error) as StoredError);
  return { status: ended.status === 3 ? "cancelled" : "failed", error: why };
}
