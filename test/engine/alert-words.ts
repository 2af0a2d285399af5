// Short words about alerts for engine tests: an instance that looks, with everything it was told.

import type { AlertOptions } from "../../src/alerts/alert-options.js";
import type { AlertNotice } from "../../src/alerts/alert-view.js";
import type { StartOptions } from "../../src/instance/config.js";
import type { Network } from "../../src/shared/ports.js";
import type { Member, World } from "./world.js";

export type Watcher = Member & {
  /** What its function was called with. */
  readonly told: AlertNotice[];
  /** `opened silent s`, in order. */
  lines(): string[];
};

export const NOBODY = { scheduler: false, worker: false } as const;

/** An instance that was started, as one that only serves unless told otherwise, and tells a function. */
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
  const told: AlertNotice[] = [];
  const { alerts = {}, start = NOBODY, skewMs = 0, network, prepare } = given;
  const to = alerts.to ?? [(alert: AlertNotice) => void told.push(alert)];
  const member = world.member(
    { poll: "10s", alerts: { ...alerts, to } },
    { skewMs, ...(network ? { network } : {}) },
  );
  prepare?.(member);
  await member.holdfast.start(start);
  const lines = () => told.map(({ event, kind, subject }) => `${event} ${kind} ${subject.name}`);
  return { ...member, told, lines };
}

export async function openKinds({ holdfast }: Member): Promise<string[]> {
  const { alerts } = await holdfast.alerts.list();
  return alerts.map(({ kind, subject }) => `${kind} ${subject.name}`);
}
