// Performs one operation of the plan through the public interface of one process, as people and programs do, and
// compares the response with the tables.

import { DeliveryConflictError, HoldfastError, KeyConflictError } from "../../../shared/errors.js";
import type { CalendarHistory } from "../checkers/calendars.js";
import type { Clients } from "../checkers/clients.js";
import { short } from "../checkers/effects.js";
import type { MonitorHistory } from "../checkers/monitors.js";
import type { RunFacts } from "../checkers/run-places.js";
import type { RunHistory } from "../checkers/runs.js";
import type { ScheduleHistory } from "../checkers/schedules.js";
import type { WaitHistory } from "../checkers/waits.js";
import type { EventLog } from "../event-log.js";
import type { SimulatedProcess } from "../fleet/process.js";
import type { RemoteSide } from "../fleet/remote-side.js";
import { LOTS } from "./jobs.js";
import { type LockWorld, underLock } from "./locks.js";
import type { Operation } from "./operation.js";
import { monitorOptions } from "./plan.js";
import { keyOf, SIGNAL } from "./waiting-handler.js";

export type OperationWorld = {
  readonly log: EventLog;
  readonly clients: Clients;
  readonly runs: RunHistory;
  readonly schedules: ScheduleHistory;
  readonly calendars: CalendarHistory;
  readonly monitors: MonitorHistory;
  readonly waits: WaitHistory;
  readonly lockWorld: LockWorld;
  readonly remote: RemoteSide;
  nowMs(): number;
  /** World time, which no clock of a machine follows exactly. */
  worldMs(): number;
  pass(ms: number): Promise<void>;
  /** Runs a process for one bounded pass, as an external cron does. */
  callOnce(luck: number): Promise<string>;
  garble(process: SimulatedProcess, schedule: string): void;
  crash(process: SimulatedProcess, why: string): void;
  stop(process: SimulatedProcess, graceMs: number): void;
};

const KEYS = 10;

/** Performs the operation. Resolves with the response, and never if the process dies first. */
export async function perform(
  operation: Operation,
  process: SimulatedProcess,
  world: OperationWorld,
): Promise<void> {
  const { log } = world;
  const { kind } = operation;
  log.mark(`operation ${operation.id} ${kind} at ${process.label}`);
  try {
    const answer = await ask(operation, process, world);
    log.mark(`operation ${operation.id} answered`);
    log.narrate(() => `${process.label} was asked to ${inWords(operation)}: ${answer}`);
  } catch (error) {
    const code = error instanceof HoldfastError ? error.code : "an error";
    log.mark(`operation ${operation.id} refused ${code}`);
    log.narrate(() => `${process.label} was asked to ${inWords(operation)}: ${code}`);
  }
}

function inWords({ kind, job, schedule, calendar }: Operation): string {
  if (kind === "putCalendar") return `${kind} ${calendar.name}`;
  const isOfJob = kind.startsWith("enqueue");
  const isOfRun = ["cancel", "retry", "retryChildren", "remove"].includes(kind);
  if (["order", "signal", "signalRun", "retryFrom"].includes(kind))
    return `${kind} of a waiting run`;
  if (kind === "lock" || kind === "remote" || kind === "pass") return kind;
  return isOfJob ? `${kind} ${job}` : isOfRun ? `${kind} a run` : `${kind} ${schedule}`;
}

function ask(
  operation: Operation,
  process: SimulatedProcess,
  world: OperationWorld,
): Promise<string> {
  const { holdfast } = process;
  const { schedule, luck } = operation;
  switch (operation.kind) {
    case "enqueue":
      return enqueue(operation, process, world);
    case "enqueueMany":
      return enqueueMany(operation, process, world);
    case "trigger":
      return trigger(operation, process, world);
    case "cancel":
      return onRun(world, luck, isLive, (id) => holdfast.runs.cancel(id));
    case "retry":
      return onRun(world, luck, isFailed, (id) => holdfast.runs.retry(id));
    case "retryChildren":
      return onRun(world, luck, isFanning, async (id) => {
        const { retried } = await holdfast.runs.retryFailed(id);
        if (retried > 0) world.log.saw("children-retried-together");
        return String(retried);
      });
    case "remove":
      return onRun(world, luck, isEnded, (id) => holdfast.runs.delete(id));
    case "upsert":
      return holdfast.schedules.upsert(schedule, operation.options).then(() => "done");
    case "pause":
      return holdfast.schedules.pause(schedule, "simulated").then(() => "done");
    case "resume":
      return holdfast.schedules.resume(schedule).then(() => "done");
    case "delete":
      return holdfast.schedules.delete(schedule).then(() => "done");
    case "backfill":
      return backfill(operation, process, world);
    case "cancelBackfill":
      return holdfast.schedules.cancelBackfill(schedule).then(String);
    case "putCalendar":
      return putCalendar(operation, process, world);
    case "pauseQueue":
    case "resumeQueue": {
      const isPaused = operation.kind === "pauseQueue";
      return process.store.queues.pause({ queue: "side", isPaused }).then(() => "done");
    }
    case "putMonitor":
      return holdfast.schedules.upsert(schedule, monitorOptions(luck)).then(() => "done");
    case "ping":
      return ping(operation, process, world);
    case "pauseAll":
      return pauseForAWhile(operation, process, world);
    case "resumeAll":
      return holdfast.resume().then((lifted) => (lifted ? "lifted" : "none"));
    case "garble":
      world.garble(process, schedule);
      return Promise.resolve("done");
    case "lock":
      return underLock(luck, process, world.lockWorld);
    case "remote":
      return world.remote.work(operation);
    case "order":
      return order(operation, process, world);
    case "signal":
      return signal(keyOf(luck), luck, process, world);
    case "signalRun":
      return onRun(world, luck, isWaiting, (id) => signal(id, luck, process, world));
    case "retryFrom":
      return onRun(
        world,
        luck,
        (run) => isFailed(run) && run.job === "waiting",
        (id) => holdfast.runs.retry(id, { fromStep: luck % 2 === 0 ? "begin" : "approval" }),
      );
    case "pass":
      return world.callOnce(luck);
    case "look":
      return look(operation, process, world);
    case "stop":
      world.stop(process, [0, 1_000, 10_000, 40_000][luck % 4] ?? 0);
      return Promise.resolve("begun");
    case "crash":
      world.crash(process, "by an operator");
      return Promise.resolve("done");
  }
}

/** The monitored program works around its ticks, and usually checks in. */
async function ping(
  { id, luck, schedule }: Operation,
  { holdfast }: SimulatedProcess,
  { schedules, monitors, ...world }: OperationWorld,
): Promise<string> {
  const { nextAt = null, definition } = schedules.byName(schedule) ?? {};
  const waitMs = (nextAt ?? 0) - (definition?.graceMs ?? 0) - world.nowMs() + (luck % 60_000);
  if (waitMs > 0 && waitMs < 300_000) await world.pass(waitMs);
  const state = (["ok", "ok", "start", "fail"] as const)[luck % 4] ?? "ok";
  const deliveryId =
    state !== "start" && luck % 3 > 0 ? `ping-${Math.floor(world.worldMs() / 900_000)}` : null;
  const askedMs = world.worldMs();
  monitors.tells(id, state, deliveryId);
  const answer = await holdfast.schedules.ping(schedule, {
    state,
    ...(deliveryId === null ? {} : { deliveryId }),
  });
  monitors.answered(answer, { deliveryId, askedMs });
  return `${state}, for ${answer.tick?.toISOString() ?? "no tick"}`;
}

/** The process that paused may die before it resumes; then another one resumes. */
async function pauseForAWhile(
  { luck }: Operation,
  { holdfast }: SimulatedProcess,
  world: OperationWorld,
): Promise<string> {
  await holdfast.pause({ note: "simulated" });
  await world.pass(5_000 + (luck % 90_000));
  return (await holdfast.resume()) ? "lifted" : "lifted by another";
}

async function enqueue(
  { luck, job }: Operation,
  { holdfast }: SimulatedProcess,
  world: OperationWorld,
): Promise<string> {
  const isKeyed = luck % 10 < 3;
  // Few inputs for a key, so that callers often use the same one, and sometimes another.
  const key = `key-${Math.floor(luck / 10) % KEYS}`;
  const input = isKeyed
    ? { n: (luck >> 9) % 6 === 0 ? 1 : 0, lot: 0 }
    : { n: luck, lot: luck % LOTS };
  const delay = luck % 7 < 2 ? { delay: 1_000 + (luck % 240_000) } : {};
  const priority = luck % 11 === 0 ? { priority: (luck % 7) - 3 } : {};
  const name = `the key ${key} of ${job}`;
  try {
    const options = { ...delay, ...priority, ...(isKeyed ? { key } : {}) };
    const { id, deduplicated } = await holdfast.enqueue(job, input, options);
    world.clients.acknowledged(id);
    if (isKeyed) world.clients.answeredByKey(name, JSON.stringify(input), id);
    if (deduplicated) world.log.saw("key-deduplicated");
    return `run ${short(id)}${deduplicated ? ", which has the key" : ""}`;
  } catch (error) {
    if (!(error instanceof KeyConflictError)) throw error;
    world.log.saw("key-conflict");
    world.clients.refusedByKey(name, JSON.stringify(input));
    return "refused, as the key belongs to another input";
  }
}

async function order(
  { luck }: Operation,
  { holdfast }: SimulatedProcess,
  world: OperationWorld,
): Promise<string> {
  const { id } = await holdfast.enqueue("waiting", { n: luck, lot: 0 });
  world.clients.acknowledged(id);
  return `run ${short(id)}`;
}

async function signal(
  key: string,
  luck: number,
  { holdfast }: SimulatedProcess,
  { waits }: OperationWorld,
): Promise<string> {
  const value = { by: luck % 2 };
  const { repeated } = await holdfast.signal(SIGNAL, { key, value });
  waits.acknowledged(SIGNAL, key, value);
  return repeated ? "repeated" : "stored";
}

async function enqueueMany(
  { luck, job }: Operation,
  process: SimulatedProcess,
  world: OperationWorld,
): Promise<string> {
  const count = 2 + (luck % 6);
  const asked = Array.from({ length: count }, (_, at) =>
    process.holdfast.enqueue(job, { n: luck + at, lot: luck % LOTS }),
  );
  const answers = await Promise.all(asked);
  for (const { id } of answers) world.clients.acknowledged(id);
  return `runs ${answers.map(({ id }) => short(id)).join(", ")}`;
}

async function trigger(
  { luck, schedule }: Operation,
  { holdfast }: SimulatedProcess,
  world: OperationWorld,
): Promise<string> {
  const { log, clients, schedules } = world;
  const isIfDue = luck % 10 < 4;
  const deliveryId = luck % 3 === 0 ? `delivery-${Math.floor(luck / 30) % 5}` : undefined;
  const delivery = deliveryId === undefined ? {} : { deliveryId };
  const mode = luck % 5 === 0 ? { mode: "test" as const } : {};
  if (!isIfDue) schedules.asked.set(schedule, (schedules.asked.get(schedule) ?? 0) + 1);
  try {
    const before = schedules.byName(schedule);
    // As an external cron does: it calls when the tick is due.
    const dueInMs = (before?.nextAt ?? 0) - world.nowMs();
    if (isIfDue && dueInMs > 0 && dueInMs < 300_000) await world.pass(dueInMs);
    const input = before && JSON.stringify([before.id, before.version]);
    const wasKnown = deliveryId !== undefined && knownDelivery(clients, schedule, deliveryId);
    const answer = await holdfast.schedules.trigger(
      schedule,
      isIfDue ? { ifDue: true, ...delivery } : { ...mode, ...delivery },
    );
    if (answer.runId === undefined) {
      if (answer.reason === "locked") log.saw(isIfDue ? "if-due-locked" : "trigger-locked");
      return `skipped, ${answer.reason}`;
    }
    clients.acknowledged(answer.runId);
    if (wasKnown) log.saw("delivery-repeated");
    else if (isIfDue) log.saw("if-due-fired");
    if (deliveryId !== undefined && input !== undefined)
      clients.answeredByKey(deliveryName(schedule, deliveryId), "", answer.runId);
    return `run ${short(answer.runId)}`;
  } catch (error) {
    if (error instanceof DeliveryConflictError) return "refused, as the delivery had another input";
    throw error;
  }
}

function deliveryName(schedule: string, id: string): string {
  return `the delivery ${id} of ${schedule}`;
}

function knownDelivery(clients: Clients, schedule: string, id: string): boolean {
  return clients.isKnown(deliveryName(schedule, id));
}

async function backfill(
  { luck, schedule }: Operation,
  { holdfast }: SimulatedProcess,
  world: OperationWorld,
): Promise<string> {
  const to = world.nowMs() - (luck % 600_000);
  const from = to - 60_000 - (luck % 900_000);
  const made = await holdfast.schedules.backfill(schedule, {
    from: new Date(from),
    to: new Date(to),
    all: luck % 4 === 0,
  });
  return `${made.total} ticks`;
}

async function putCalendar(
  { calendar: { name, options } }: Operation,
  { holdfast }: SimulatedProcess,
  world: OperationWorld,
): Promise<string> {
  const askedMs = world.worldMs();
  const { description } = await holdfast.calendars.upsert(name, options);
  world.calendars.checkAnswered(name, askedMs);
  return description;
}

async function look(
  { luck, schedule }: Operation,
  { holdfast }: SimulatedProcess,
  world: OperationWorld,
): Promise<string> {
  if (luck % 3 === 0) await holdfast.schedules.explain(schedule, new Date(world.nowMs() - 60_000));
  else if (luck % 3 === 1) await holdfast.schedules.preview(schedule, 3);
  else await holdfast.runs.list({ limit: 5 });
  return "done";
}

async function onRun(
  { runs }: OperationWorld,
  luck: number,
  fits: (run: RunFacts) => boolean,
  act: (id: string) => Promise<string>,
): Promise<string> {
  const fitting = [...runs.runs.values()].filter(fits);
  // The newest runs, because most of the others have ended long ago.
  const recent = fitting.slice(-8);
  const run = recent[luck % Math.max(1, recent.length)];
  return run ? `${await act(run.id)} (run ${short(run.id)})` : "there is none";
}

function isLive({ status }: RunFacts): boolean {
  return status === null;
}

function isFailed({ status }: RunFacts): boolean {
  return status !== null && status > 1;
}

function isEnded({ status }: RunFacts): boolean {
  return status !== null;
}

function isWaiting(run: RunFacts): boolean {
  return isLive(run) && run.job === "waiting";
}

function isFanning({ job }: RunFacts): boolean {
  return job === "fanning";
}
