// Builds the API of one actor, `holdfast.as(actor)`: the verbs that change something, in that actor's name. Programs that
// forward calls of other people (the HTTP handler, a bot, a back office) name the actor once; the audit trail keeps it.

import { Alerts } from "../alerts/alerts.js";
import type { Destination } from "../alerts/destinations/destinations.js";
import { Locks } from "../locks/locks.js";
import type { LockProvider } from "../locks/rules/lock.js";
import { type CleanedUp, type CleanupOptions, cleanUp } from "../operations/cleanup.js";
import { Instances } from "../operations/instances.js";
import { Keys } from "../operations/keys.js";
import { type Pause, type PauseOptions, pauseAll, resumeAll } from "../operations/pause.js";
import { Queues } from "../operations/queues.js";
import { type Actor, type AuditEntry, VIAS } from "../operations/rules/audit.js";
import { Runs } from "../runs/runs.js";
import type { Waiter } from "../runs/waiter.js";
import { Calendars } from "../schedules/calendars.js";
import type { Reconciler } from "../schedules/reconcile.js";
import type { ScheduleCache } from "../schedules/schedule-cache.js";
import { Schedules } from "../schedules/schedules.js";
import type { ScheduleUpdater } from "../schedules/updater.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { requireOptions } from "../shared/options.js";
import type { Network, Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Store } from "../store/store.js";
import type { Emit } from "../telemetry/log.js";
import type { AnnouncedJobs } from "./jobs.js";

/** The person or program that makes a change, for the audit trail. */
export type ActorOptions = {
  /** A name: `ada@example.org`, "deploy bot". */
  readonly who: string;
  /** @default "code" */
  readonly via?: Actor["via"] | undefined;
  readonly scope?: string | null | undefined;
  readonly address?: string | null | undefined;
  readonly requestId?: string | null | undefined;
};

export type Acting = {
  readonly runs: Runs;
  readonly schedules: Schedules;
  readonly calendars: Calendars;
  readonly queues: Queues;
  readonly locks: Locks;
  readonly instances: Instances;
  readonly alerts: Alerts;
  readonly keys: Keys;
  cleanup(options?: CleanupOptions): Promise<CleanedUp>;
  pause(options?: PauseOptions): Promise<Pause>;
  resume(options?: { readonly by?: string }): Promise<Pause | null>;
};

const TEXT_MAX = 300;

export function readActor(options: ActorOptions): Actor {
  requireOptions(options, "as()");
  const members = ["who", "via", "scope", "address", "requestId"];
  const problems: Problem[] = refuseUnknownMembers(options, members, "as()");
  const { who, via = "code" } = options;
  if (typeof who !== "string" || who.trim() === "" || who.length > TEXT_MAX)
    problems.push({ field: "as().who", message: 'must be a name such as "ada@example.org"' });
  if (!VIAS.includes(via))
    problems.push({ field: "as().via", message: `must be one of ${VIAS.join(", ")}` });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const text = (value: string | null | undefined) => value?.slice(0, TEXT_MAX) ?? null;
  return {
    who,
    via,
    scope: text(options.scope),
    address: text(options.address),
    requestId: text(options.requestId),
  };
}

export type ActorParts = {
  readonly store: (verb: string) => Promise<Store>;
  readonly ports: Ports;
  readonly updater: ScheduleUpdater;
  readonly waiter: Waiter;
  readonly jobs: AnnouncedJobs;
  readonly cache: ScheduleCache;
  readonly app: string | null;
  readonly locks: (verb: string) => Promise<LockProvider>;
  /** True if locks are kept outside of the database: the audit entry then needs a write of its own. */
  readonly hasOwnLockProvider: boolean;
  readonly emit: Emit;
  readonly destinations: readonly Destination[];
  readonly network: Network;
  readonly reconciler: Reconciler;
  /** Work may be due now that was not before. */
  readonly onChanged: () => void;
};

export function actorApi(actor: Actor, parts: ActorParts): Acting {
  const { store, ports, updater, emit, onChanged } = parts;
  const schedules = new Schedules({
    store,
    actor,
    ports,
    updater,
    cache: parts.cache,
    jobs: parts.jobs,
    app: parts.app,
    reconciler: parts.reconciler,
    onChanged,
    emit,
  });
  const addAudit = async (entry: AuditEntry) => (await store("locks")).audit.add(entry);
  return {
    schedules,
    runs: new Runs({
      store: () => store("runs"),
      actor,
      waiter: parts.waiter,
      ports,
      updater,
      onChanged,
    }),
    queues: new Queues({ store: () => store("queues"), actor, onChanged }),
    calendars: new Calendars({
      store: () => store("calendars"),
      actor,
      applyTo: (schedule) => schedules.applyCalendars(schedule),
    }),
    locks: new Locks({
      provider: parts.locks,
      actor,
      addAudit: parts.hasOwnLockProvider ? addAudit : null,
      onReleased: (facts) => emit("lock.revoked", facts),
    }),
    instances: new Instances({ store, actor, onChanged }),
    alerts: new Alerts({
      store,
      actor,
      destinations: parts.destinations,
      ports,
      network: parts.network,
    }),
    keys: new Keys({ store: () => store("keys"), actor }),
    cleanup: (options = {}) => cleanUp({ store, actor, ports, emit, onChanged }, options),
    pause: (options = {}) => pauseAll({ store, actor, emit }, options),
    resume: (options = {}) => resumeAll({ store, actor, emit, onChanged }, options),
  };
}
