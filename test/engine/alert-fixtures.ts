// Fixtures for engine tests of alerts: an instance that evaluates them, with every notice that it delivered.

import type { AlertOptions } from "../../src/alerts/alert-options.js";
import type { AlertNotice } from "../../src/alerts/alert-view.js";
import type { StartOptions } from "../../src/instance/config.js";
import type { Network } from "../../src/shared/ports.js";
import type { Member, World } from "./world.js";

export type Watcher = Member & {
  /** The notices that its function received. */
  readonly notices: AlertNotice[];
  /** `opened silent s`, in order. */
  lines(): string[];
};

export const NOBODY = { scheduler: false, worker: false } as const;

/** Starts an instance that delivers alerts to a function; by default it neither fires nor executes. */
export async function watcher(
  world: World,
  given: {
    readonly alerts?: AlertOptions;
    readonly start?: StartOptions;
    readonly skewMs?: number;
    readonly network?: Network;
    readonly prepare?: (member: Member) => void;
  } = {},
): Promise<Watcher> {
  const notices: AlertNotice[] = [];
  const { alerts = {}, start = NOBODY, skewMs = 0, network, prepare } = given;
  const to = alerts.to ?? [(alert: AlertNotice) => void notices.push(alert)];
  const member = world.member(
    { poll: "10s", alerts: { ...alerts, to } },
    { skewMs, ...(network ? { network } : {}) },
  );
  prepare?.(member);
  await member.holdfast.start(start);
  const lines = () => notices.map(({ event, kind, subject }) => `${event} ${kind} ${subject.name}`);
  return { ...member, notices, lines };
}

export async function openKinds({ holdfast }: Member): Promise<string[]> {
  const { alerts } = await holdfast.alerts.list();
  return alerts.map(({ kind, subject }) => `${kind} ${subject.name}`);
}
