// Finds and delivers alerts, one pass per call of the loop. Of all instances one gets the turn each minute: it observes,
// decides (rules/) and writes. Any instance claims due deliveries, so that each is sent by one instance, and by another if
// that one dies. Needs neither scheduler nor worker, so that an instance that only serves HTTP notices dead schedulers. This
// folder must never change a run, and changes a schedule only to pause it by rule.

import { type RetryPolicy, retryDelayMs } from "../runs/rules/retry.js";
import { describeFailure } from "../shared/failure.js";
import { momentOf, type Network, type Ports } from "../shared/ports.js";
import type { AlertRecord, ClaimedDelivery } from "../store/alerts/alerts.js";
import type { StatisticsRecord } from "../store/statistics.js";
import type { Store } from "../store/store.js";
import { skewOf } from "../telemetry/clock-watch.js";
import type { Emit } from "../telemetry/log.js";
import type { Heartbeat } from "./alert-options.js";
import { toNotice } from "./alert-view.js";
import type { Destination } from "./destinations/destinations.js";
import { type Post, sendHeartbeat, sendNotice } from "./destinations/send.js";
import { type AlertKind, type Finding, subjectText } from "./rules/alert.js";
import { findAlerts, observationParams } from "./rules/find.js";
import { paused, pauseNote } from "./rules/messages.js";
import {
  type AlertObservation,
  apartOf,
  hoursRead,
  type ObservedRate,
  withoutApart,
} from "./rules/observation.js";
import { planAlerts } from "./rules/plan.js";
import type { AlertRules } from "./rules/rules.js";

const ALERTS_EVERY_MS = 60_000;
/** A little less than a minute: the instance that had the last turn comes back after a minute by its own clock. */
const TURN_MS = 55_000;
/** No other instance sends a claimed delivery for this time, which is longer than any destination may take. */
const DELIVERY_LEASE_MS = 90_000;
const DELIVERIES_MAX = 50;
/** About two hours in all. */
const DELIVERY_RETRY: RetryPolicy = {
  attempts: 12,
  delayMs: 5_000,
  factor: 2,
  maxMs: 30 * 60_000,
  jitter: 0.2,
};
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The author of pauses by an alert rule. */
export const ALERTS_BY = "alerts";

export type AlertingParams = {
  readonly rules: AlertRules;
  readonly destinations: readonly Destination[];
  readonly heartbeat: Heartbeat | null;
  readonly ports: Ports;
  readonly network: Network;
  readonly emit: Emit;
  readonly instanceId: string;
  readonly app: string | null;
  /** Unless it is paused already. */
  readonly pause: (schedule: string, note: string) => Promise<void>;
};

export class Alerting {
  readonly #params: AlertingParams;
  readonly #stopping = new AbortController();
  #skewMs: number | null = null;

  constructor(params: AlertingParams) {
    this.#params = params;
  }

  /** Aborts deliveries in progress; another instance sends them again. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Evaluates the rules if it is this instance's turn, and delivers. Returns the time until the next retry of a delivery. */
  async pass(store: Store, holder: number): Promise<number> {
    const { isMine } = await this.#turn(store, holder);
    const openAlerts = isMine ? await this.#evaluate(store) : 0;
    const [retryInMs] = await Promise.all([
      this.#deliver(store),
      isMine ? this.#beat(openAlerts) : undefined,
    ]);
    return retryInMs;
  }

  /** Takes the turn if it is due. Also measures this process's clock skew, less what the round trip may explain. */
  async #turn(store: Store, holder: number) {
    const { clock } = this.#params.ports;
    const sent = momentOf(clock);
    const turn = await store.alerts.takeTurn({ holder, skewMs: this.#skewMs, everyMs: TURN_MS });
    this.#skewMs = skewOf({ sentAt: sent, gotAt: momentOf(clock), now: turn.now });
    return turn;
  }

  /** Returns the number of open alerts. */
  async #evaluate(store: Store): Promise<number> {
    const { rules, ports, emit } = this.#params;
    const seen = await store.alerts.observeSchedules();
    const [rest, jobRates] = await Promise.all([
      store.alerts.observeRest(observationParams(rules, seen.schedules)),
      this.#jobRates(store, seen),
    ]);
    const observed: AlertObservation = { ...seen, ...rest, jobRates };
    const found = await this.#pausing(findAlerts(observed, rules), rest.pausedTicks);
    const open = await store.alerts.listOpen();
    const ownKinds = new Set(
      seen.schedules.flatMap((each) => Object.keys(each.rules ?? {}) as AlertKind[]),
    );
    const plan = planAlerts({ found, open, rules, ownKinds, now: seen.now });
    const isNothing = plan.opens.length + plan.holds.length + plan.resolves.length === 0;
    if (isNothing) return 0;
    const { told, resolved } = await store.alerts.write({
      opens: plan.opens.map((finding) => ({ ...finding, id: ports.ids.run() })),
      holds: plan.holds,
      resolves: plan.resolves.map(({ alert, message }) => ({ id: alert.id, message })),
    });
    for (const alert of told) emit("alert.opened", factsOf(alert));
    for (const alert of resolved) emit("alert.resolved", factsOf(alert));
    return plan.opens.length + plan.holds.length;
  }

  /** Judges a job by fewer hours if the runs that do not count for it are too many to read. */
  async #jobRates(
    store: Store,
    { schedules, now }: Pick<AlertObservation, "schedules" | "now">,
  ): Promise<readonly ObservedRate[]> {
    const { failureRate } = this.#params.rules;
    if (!failureRate) return [];
    const { overMs } = failureRate;
    const sinceAt = now - overMs - ((now - overMs) % HOUR_MS);
    const read = async (at: number, job: string | null) =>
      ratesOf(await store.statistics.summary({ since: { at }, bucketMs: DAY_MS, job }));
    const rates = await read(sinceAt, null);
    const apart = apartOf(schedules, rates);
    if (apart.schedules.length === 0) return rates;
    const rows = await store.alerts.observeApart({ ...apart, overMs });
    const hours = hoursRead(rows, { limit: apart.limit, sinceAt });
    const judged = rates.map(async (rate) => {
      const hourAt = hours.get(rate.name);
      if (hourAt === undefined) return [rate];
      if (hourAt === null) return [withoutApart(rate, rows, sinceAt)];
      if (hourAt > now) return [];
      return (await read(hourAt, rate.name)).map((each) => withoutApart(each, rows, hourAt));
    });
    return (await Promise.all(judged)).flat();
  }

  /** Pauses once for each streak: a resumed schedule is paused again only after another failure. */
  async #pausing(
    found: readonly Finding[],
    pausedTicks: Readonly<Record<string, number>>,
  ): Promise<readonly Finding[]> {
    const { pause, emit } = this.#params;
    return Promise.all(
      found.map(async (finding) => {
        const { kind, subject, evidence } = finding;
        const tickAt = Number(evidence.tickAt);
        const isNew = tickAt > (pausedTicks[subject.name] ?? Number.NEGATIVE_INFINITY);
        if (kind !== "consecutiveFailures" || evidence.shouldPause !== true || !isNew)
          return finding;
        try {
          await pause(subject.name, pauseNote(Number(evidence.failures), evidence.error));
        } catch (error) {
          const retryInMs = ALERTS_EVERY_MS;
          emit("store.failed", { what: "alerts", error: describeFailure(error), retryInMs }, error);
          return finding;
        }
        const message = paused(finding.message);
        return { ...finding, message, evidence: { ...evidence, pausedTickAt: tickAt } };
      }),
    );
  }

  /** Sends due deliveries; returns the time until the next retry. */
  async #deliver(store: Store): Promise<number> {
    const { destinations } = this.#params;
    if (destinations.length === 0) return Number.POSITIVE_INFINITY;
    const names = destinations.map(({ name }) => name);
    let soonestMs = Number.POSITIVE_INFINITY;
    for (;;) {
      const claimed = await store.alerts.claimDeliveries({
        destinations: names,
        leaseMs: DELIVERY_LEASE_MS,
        limit: DELIVERIES_MAX,
      });
      const waits = await Promise.all(claimed.map((each) => this.#send(store, each)));
      soonestMs = Math.min(soonestMs, ...waits);
      if (claimed.length < DELIVERIES_MAX) return soonestMs;
    }
  }

  async #send(store: Store, delivery: ClaimedDelivery): Promise<number> {
    const { destinations, ports, emit } = this.#params;
    const { alert, event, destination: name, attempt } = delivery;
    const destination = destinations.find((each) => each.name === name);
    if (!destination) return Number.POSITIVE_INFINITY;
    const error = await sendNotice(destination, toNotice(alert, event), this.#post);
    const isGivenUp = error !== null && attempt >= DELIVERY_RETRY.attempts;
    const delayMs = retryDelayMs(DELIVERY_RETRY, attempt, () => ports.random.next());
    const state = error === null ? "sent" : isGivenUp ? "failed" : "pending";
    await store.alerts.endDelivery({
      alert: alert.id,
      ...{ event, destination: name, attempt, state, error, delayMs },
    });
    if (error === null) return Number.POSITIVE_INFINITY;
    const retryInMs = isGivenUp ? null : delayMs;
    emit("alert.undelivered", { alert: alert.id, destination: name, error, attempt, retryInMs });
    return retryInMs ?? Number.POSITIVE_INFINITY;
  }

  async #beat(openAlerts: number): Promise<void> {
    const { heartbeat, app, instanceId: instance, emit } = this.#params;
    if (!heartbeat) return;
    const facts = { app, instance, openAlerts };
    const error = await sendHeartbeat(heartbeat, facts, this.#post);
    if (error !== null) emit("alert.heartbeat_failed", { error });
  }

  get #post(): Post {
    const { ports, network } = this.#params;
    return { clock: ports.clock, network, signal: this.#stopping.signal };
  }
}

/** Runs made by hand, for a test or by a backfill are left out. */
function ratesOf(records: readonly StatisticsRecord[]): readonly ObservedRate[] {
  const jobs = new Map<string, { name: string; completed: number; failed: number }>();
  for (const { job, status, regular } of records) {
    if (job === null || status === "cancelled") continue;
    const rate = jobs.get(job) ?? { name: job, completed: 0, failed: 0 };
    rate[status] += regular;
    jobs.set(job, rate);
  }
  return [...jobs.values()];
}

function factsOf({ id, kind, severity, subject, message }: AlertRecord) {
  return { alert: id, kind, severity, subject: subjectText(subject), message };
}
