// Checks the history of a round: the responses to clients, the effects of handlers and the tables must fit together
// and keep the guarantees.

import { judgeSteps } from "./checks-steps.mjs";
import { judgeOverlaps, judgeTicks } from "./checks-ticks.mjs";
import { Finder, groupBy } from "./findings.mjs";

/** @typedef {import("./tables.mjs").Row} Row */
/** @typedef {import("./findings.mjs").Violation} Violation */
/** @typedef {{ what: string, run: string, fence: number, attempt: number, pid: number }} Effect */
/**
 * @typedef {object} Operation a request of a client, and its response if there was one
 * @property {string} op
 * @property {string} verb
 * @property {"answered" | "refused" | "unknown"} is
 * @property {any} [answer]
 * @property {string} [code]
 * @property {string} [runId]
 * @property {string} [job]
 * @property {string} [key]
 * @property {number} [variant]
 * @property {number} [count]
 * @property {string} [schedule]
 * @property {string | null} [delivery]
 * @property {boolean} [isIfDue]
 */
/**
 * @typedef {object} History
 * @property {import("./tables.mjs").Tables} tables
 * @property {Operation[]} operations
 * @property {Effect[]} effects in the order in which they happened
 * @property {(definition: any, anchorMs: number) => { next(afterMs: number): number | null }} makeWhen
 */

const ENQUEUED = 0;
const SCHEDULED = 1;
const MANUAL = 2;
const COMPLETED = 1;
const FAILED = 2;
const ENDED_FAILED = 0;
const ENDED_LOST = 1;
const ENDED_TIMEOUT = 2;
/** Outcomes that do not count as a try: the next attempt has the same number. */
const REFUNDABLE = [ENDED_LOST, 3, 4, 6];

/**
 * @param {History} history
 * @returns {Violation[]}
 */
export function judge(history) {
  const facts = factsOf(history);
  return [
    ...judgeOperations(history, facts),
    ...judgeKeys(history, facts),
    ...judgePlaces(history, facts),
    ...judgeGrants(facts),
    ...judgeEnds(facts),
    ...judgeEffects(history, facts),
    ...judgeLedger(history, facts),
    ...judgeSteps(history, facts),
    ...judgeTicks(history),
    ...judgeOverlaps(history, facts),
    ...judgeCauses(history, facts),
  ];
}

/**
 * @typedef {object} RunFacts
 * @property {Row} run
 * @property {any} input
 * @property {Row | null} outcome
 * @property {Row[]} attempts without the last one, by fence
 * @property {Row[]} grants with the last one, by fence
 */

/**
 * @param {History} history
 * @returns {Map<string, RunFacts>}
 */
function factsOf({ tables }) {
  /** @type {Map<string, RunFacts>} */
  const facts = new Map();
  for (const run of tables.runs) {
    const input = JSON.parse(run.input);
    facts.set(run.id, { run, input, outcome: null, attempts: [], grants: [] });
  }
  for (const attempt of tables.attempts) facts.get(attempt.run)?.attempts.push(attempt);
  for (const outcome of tables.outcomes) {
    const run = facts.get(outcome.id);
    if (run) run.outcome = outcome;
  }
  for (const each of facts.values()) {
    const { attempts, outcome } = each;
    /** @type {Row[]} */
    const last =
      outcome && outcome.fence !== null && attempts.every(({ fence }) => fence !== outcome.fence)
        ? [{ ...outcome, ended: null }]
        : [];
    each.grants = [...attempts, ...last].sort((a, b) => a.fence - b.fence);
  }
  return facts;
}

/** Every acknowledged run exists and has ended; no run exists for a request that was certainly refused. */
function judgeOperations(
  /** @type {History} */ history,
  /** @type {Map<string, RunFacts>} */ facts,
) {
  const found = new Finder();
  /** @type {Map<string, RunFacts[]>} */
  const byOperation = groupBy(facts.values(), ({ input }) => input?.op);
  for (const operation of history.operations) {
    const { op, verb, is, answer, code } = operation;
    const made = byOperation.get(op) ?? [];
    if (verb === "enqueue" || verb === "many") {
      const wanted = verb === "many" ? Number(operation.count) : 1;
      const ids = is === "answered" ? [answer].flat().map(({ id }) => id) : [];
      for (const id of ids) {
        if (!facts.has(id)) found.add("S11", `Run ${id} was acknowledged to ${op}, but is gone.`);
        else if (!made.some(({ run }) => run.id === id))
          found.add("S11", `Run ${id} was acknowledged to ${op}, but is another's.`);
      }
      if (is === "answered" && made.length !== wanted)
        found.add("S11", `${op} asked for ${wanted} runs and made ${made.length}.`);
      if (is === "unknown" && made.length !== 0 && made.length !== wanted)
        found.add("S11", `${op} asked for ${wanted} runs, all or none, and made ${made.length}.`);
      if (is === "refused" && code !== "OUTCOME_UNKNOWN" && made.length > 0)
        found.add("S11", `${op} was refused (${code}), but made ${made.length} runs.`);
    }
    const id = verb === "keyed" || verb === "trigger" ? (answer?.id ?? answer?.runId) : undefined;
    if (id !== undefined && !facts.has(id))
      found.add("S11", `Run ${id} was acknowledged to ${op} (${verb}), but is gone.`);
    if (
      is === "refused" &&
      !["STORE_UNAVAILABLE", "OUTCOME_UNKNOWN", "KEY_CONFLICT", "STOPPED"].includes(String(code)) &&
      !(verb === "signal" && code === "SIGNAL_CONFLICT")
    )
      found.add(
        "errors",
        `${op} (${verb}) was refused by ${code}: ${/** @type {any} */ (operation).message}`,
      );
  }
  return found.all;
}

/** One key or delivery has one run for all callers; a conflict occurs only if the input differs. */
function judgeKeys(/** @type {History} */ history, /** @type {Map<string, RunFacts>} */ facts) {
  const found = new Finder();
  const keyed = groupBy(
    [...facts.values()].filter(({ run }) => run.key !== null),
    ({ run }) => `${run.job} ${run.key}`,
  );
  for (const [name, runs] of keyed)
    if (runs.length > 1) found.add("S12", `Key ${name} has ${runs.length} runs.`);
  for (const row of history.tables.keys) {
    const [holder] = keyed.get(`${row.job} ${row.key}`) ?? [];
    if (holder?.run.id !== row.run)
      found.add("S12", `Key ${row.job} ${row.key} names ${row.run}, not ${holder?.run.id}.`);
  }
  /** @type {Map<string, string>} */
  const deliveries = new Map();
  for (const { op, verb, is, answer, code, runId, ...asked } of history.operations) {
    if (verb === "keyed" && is === "answered") {
      const run = facts.get(answer.id);
      if (run?.run.key !== asked.key || run?.input.variant !== asked.variant)
        found.add("S12", `${op} was answered ${answer.id}, which is not of its key and input.`);
    }
    // Over HTTP only the message names the run.
    if (verb === "keyed" && code === "KEY_CONFLICT" && runId !== undefined) {
      const run = facts.get(String(runId));
      if (run?.run.key !== asked.key || run?.input.variant === asked.variant)
        found.add("S12", `${op} was a conflict with ${runId}, which has the same input.`);
    }
    if (verb !== "trigger" || is !== "answered" || !asked.delivery || !answer.runId) continue;
    const delivery = `${asked.schedule} ${asked.delivery}`;
    const before = deliveries.get(delivery);
    if (before !== undefined && before !== answer.runId)
      found.add("S12", `Delivery ${delivery} made ${before} and ${answer.runId}.`);
    deliveries.set(delivery, answer.runId);
  }
  return found.all;
}

/** At the end every run has an outcome, and the other tables are empty. */
function judgePlaces(
  /** @type {History} */ { tables },
  /** @type {Map<string, RunFacts>} */ facts,
) {
  const found = new Finder();
  const outcomes = groupBy(tables.outcomes, ({ id }) => id);
  for (const id of facts.keys()) {
    const count = outcomes.get(id)?.length ?? 0;
    if (count !== 1) found.add("S16", `Run ${id} has ${count} outcomes.`);
  }
  for (const id of outcomes.keys())
    if (!facts.has(id)) found.add("S16", `Outcome ${id} is of no run.`);
  for (const { run } of tables.attempts)
    if (!facts.has(run)) found.add("S16", `An attempt is of run ${run}, which is none.`);
  for (const [name, rows] of Object.entries({
    ready: tables.ready,
    waiting: tables.waiting,
    lease: tables.leases,
  }))
    if (rows.length > 0)
      found.add(
        "L",
        `${rows.length} rows are left in ${name}: ${JSON.stringify(rows.slice(0, 3))}`,
      );
  return found.all;
}

/** Fences increase, attempts are counted, and none exceeds the limit. */
function judgeGrants(/** @type {Map<string, RunFacts>} */ facts) {
  const found = new Finder();
  for (const { run, outcome, attempts, grants } of facts.values()) {
    const limit = run.attempts + (outcome?.extra ?? 0);
    let spent = 0;
    grants.forEach((grant, at) => {
      const before = grants[at - 1];
      if (before && grant.fence <= before.fence)
        found.add("S2", `Run ${run.id} had fence ${before.fence} and then ${grant.fence}.`);
      const step = grant.attempt - (before?.attempt ?? 0);
      const isRefund = step === 0 && before !== undefined && REFUNDABLE.includes(before.ended);
      if (step !== 1 && !isRefund)
        found.add("S10", `Run ${run.id}: ${grantsText(grants)} do not count up.`);
      if (step === 1) spent += 1;
      if (run.job === "permanent" && grant.ended === ENDED_FAILED)
        found.add("S14", `Run ${run.id} failed for good and was tried again.`);
      if (
        run.on_lost === 1 &&
        grant.ended === ENDED_LOST &&
        grants[at + 1]?.attempt !== grant.attempt
      )
        found.add(
          "S10",
          `Run ${run.id} was lost for good and was tried again: ${grantsText(grants)}`,
        );
    });
    if (spent > limit || (outcome && outcome.attempt > limit))
      found.add("S10", `Run ${run.id} had ${spent} attempts of ${limit}: ${grantsText(grants)}.`);
    if (outcome && attempts.some(({ fence }) => fence === outcome.fence))
      found.add("S3", `Run ${run.id} ended under ${outcome.fence}, which was taken from it.`);
    if (outcome?.fence && grants.at(-1)?.fence !== outcome.fence)
      found.add("S3", `Run ${run.id} ended under ${outcome.fence}: ${grantsText(grants)}.`);
  }
  return found.all;
}

/** Only the holder completed a run, and every failed run had a reason. */
function judgeEnds(/** @type {Map<string, RunFacts>} */ facts) {
  const found = new Finder();
  for (const { run, outcome } of facts.values()) {
    if (!outcome) continue;
    if (outcome.status === COMPLETED) {
      const result = JSON.parse(outcome.result ?? "null");
      if (
        result?.run !== run.id ||
        result?.fence !== outcome.fence ||
        result?.attempt !== outcome.attempt
      )
        found.add("S3", `Run ${run.id} ended under ${outcome.fence} with ${outcome.result}.`);
      if (["doomed", "permanent"].includes(run.job))
        found.add("S3", `Run ${run.id} of ${run.job} completed.`);
    }
    if (outcome.status === FAILED) {
      const { code } = JSON.parse(outcome.error ?? "{}");
      const isLast = outcome.attempt >= run.attempts + outcome.extra;
      const isFinal = run.job === "permanent" || (run.on_lost === 1 && code === "LEASE_EXPIRED");
      if (!isLast && !isFinal)
        found.add(
          "S10",
          `Run ${run.id} of ${run.job} failed after ${outcome.attempt}: ${outcome.error}`,
        );
    }
  }
  return found.all;
}

/** Each fence belongs to one process and ran each run once; completed runs had the effects that they report. */
function judgeEffects(
  /** @type {History} */ { effects, tables },
  /** @type {Map<string, RunFacts>} */ facts,
) {
  const found = new Finder();
  const pidOf = new Map(
    tables.instances.map(({ no, id }) => [no, Number(String(id).split(":")[1])]),
  );
  /** @type {Map<number, number>} */
  const pids = new Map();
  /** @type {Set<string>} */
  const seen = new Set();
  for (const { what, run, fence, attempt, pid } of effects) {
    // Steps have checks of their own.
    if (what.startsWith("step:")) continue;
    const name = `${what} ${run} ${fence}`;
    if (seen.has(name)) found.add("E", `Run ${run} has "${what}" twice under fence ${fence}.`);
    seen.add(name);
    if (what === "done" && !seen.has(`begin ${run} ${fence}`))
      found.add("E", `Run ${run} was done under fence ${fence} without a beginning.`);
    if ((pids.get(fence) ?? pid) !== pid)
      found.add("S1", `Fence ${fence} was held by ${pids.get(fence)} and ${pid}.`);
    pids.set(fence, pid);
    const grant = facts.get(run)?.grants.find((each) => each.fence === fence);
    if (!grant) {
      found.add("S3", `Run ${run} had "${what}" under fence ${fence}, which it never had.`);
      continue;
    }
    if (grant.attempt !== attempt)
      found.add("S10", `Run ${run}, fence ${fence}: attempt ${attempt}, stored ${grant.attempt}.`);
    if (grant.holder !== null && pidOf.get(grant.holder) !== pid)
      found.add(
        "S1",
        `Fence ${fence} is stored for ${pidOf.get(grant.holder)}, but ${pid} had it.`,
      );
  }
  for (const { run, outcome, attempts } of facts.values()) {
    if (outcome?.status === COMPLETED && !seen.has(`done ${run.id} ${outcome.fence}`))
      found.add("E", `Run ${run.id} completed under ${outcome.fence} without having been done.`);
    for (const { fence, ended } of attempts) {
      const isBegun =
        ended === ENDED_LOST || ended === ENDED_TIMEOUT || seen.has(`begin ${run.id} ${fence}`);
      if (ended === ENDED_FAILED && !isBegun)
        found.add("E", `Run ${run.id} failed under ${fence} without having begun.`);
    }
  }
  return found.all;
}

/** Each completed run has its committed work exactly once, under the fence that completed it; no other run has any. */
function judgeLedger(
  /** @type {History} */ { tables },
  /** @type {Map<string, RunFacts>} */ facts,
) {
  const found = new Finder();
  const rows = groupBy(tables.ledger, ({ run }) => run);
  for (const { run, outcome } of facts.values()) {
    if (run.job !== "ledger") continue;
    const written = rows.get(run.id) ?? [];
    const wanted = outcome?.status === COMPLETED ? 1 : 0;
    if (written.length !== wanted)
      found.add("S9", `Run ${run.id} wrote ${written.length} rows, not ${wanted}.`);
    if (written.some(({ fence }) => fence !== outcome?.fence))
      found.add("S9", `Run ${run.id} wrote under another fence than ${outcome?.fence}.`);
  }
  for (const id of rows.keys())
    if (!facts.has(id)) found.add("S9", `Run ${id} wrote a row, but is none.`);
  return found.all;
}

/** Every run has a request. */
function judgeCauses(
  /** @type {History} */ { operations, tables },
  /** @type {Map<string, RunFacts>} */ facts,
) {
  const found = new Finder();
  const asked = new Set(operations.map(({ op }) => op));
  const keys = new Set(operations.map(({ job, key }) => `${job} ${key}`));
  const names = new Map(tables.schedules.map(({ id, name }) => [id, name]));
  const triggers = groupBy(
    operations.filter(({ verb }) => verb === "trigger"),
    ({ schedule }) => schedule,
  );
  /** @type {Map<string, number>} */
  const manual = new Map();
  for (const { run, input } of facts.values()) {
    if (run.mode === ENQUEUED) {
      const isCalled = facts.has(input?.caller) && run.parent === input.caller;
      if (!isCalled && !asked.has(input?.op) && !keys.has(`${run.job} ${run.key}`))
        found.add("S13", `Run ${run.id} was enqueued by nobody.`);
    } else if (run.mode === MANUAL) {
      const name = names.get(run.schedule) ?? "";
      manual.set(name, (manual.get(name) ?? 0) + 1);
    } else if (run.mode !== SCHEDULED) found.add("S13", `Run ${run.id} is of mode ${run.mode}.`);
  }
  for (const [name, count] of manual) {
    const most = triggers.get(name)?.length ?? 0;
    if (count > most) found.add("S13", `${name} has ${count} manual runs of ${most} triggers.`);
  }
  return found.all;
}

function grantsText(/** @type {Row[]} */ grants) {
  return grants.map(({ fence, attempt, ended }) => `${fence}/${attempt}/${ended}`).join(" ");
}
