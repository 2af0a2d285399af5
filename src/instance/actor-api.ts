// `holdfast.as(actor)`: the verbs that change something, in somebody's name. Whoever passes calls of
// others on (the HTTP handler, a bot, a back office) says once who asks; the audit trail keeps it.

import type { Alerts } from "../alerts/alerts.js";
import type { Locks } from "../locks/locks.js";
import type { CleanedUp, CleanupOptions } from "../operations/cleanup.js";
import type { Instances } from "../operations/instances.js";
import type { Pause, PauseOptions } from "../operations/pause.js";
import type { Queues } from "../operations/queues.js";
import { type Actor, VIAS } from "../operations/rules/audit.js";
import type { Runs } from "../runs/runs.js";
import type { Calendars } from "../schedules/calendars.js";
import type { Schedules } from "../schedules/schedules.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { requireOptions } from "../shared/options.js";
import { refuseUnknownMembers } from "../shared/suggest.js";

/** Who asks, for the audit trail. */
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
