// Gives users `holdfast.alerts`: lists alerts, and mutes, acknowledges and resolves them. alerting.ts finds and delivers
// them.

import { type Actor, auditEntry } from "../operations/rules/audit.js";
import { type Duration, durationMs, durationWords } from "../shared/duration.js";
import { AlertAmbiguousError, AlertNotFoundError, ConfigurationError } from "../shared/errors.js";
import { findId, isUuid } from "../shared/id.js";
import { requireName } from "../shared/names.js";
import { type By, readBy } from "../shared/options.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT, pageOf } from "../shared/paging.js";
import type { Network, Ports } from "../shared/ports.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { AlertMark } from "../store/alerts/alerts.js";
import type { Store } from "../store/store.js";
import { type Alert, type AlertNotice, toAlert } from "./alert-view.js";
import type { Destination } from "./destinations/destinations.js";
import { sendNotice } from "./destinations/send.js";
import { ALERT_KINDS, type AlertKind } from "./rules/alert.js";

export type AlertListOptions = {
  /** @default "open" */
  readonly state?: "open" | "resolved" | "all" | undefined;
  readonly kind?: AlertKind | undefined;
  /** The name of a job, a schedule or an instance. */
  readonly subject?: string | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

export type AlertPage = {
  readonly alerts: readonly Alert[];
  readonly nextCursor: string | null;
};

/** Whether a test alert arrived, destination by destination. */
export type AlertTested = {
  readonly ok: boolean;
  readonly deliveries: readonly {
    readonly destination: string;
    readonly ok: boolean;
    readonly error: string | null;
  }[];
};

export type AlertsParams = {
  readonly store: (verb: string) => Promise<Store>;
  readonly actor: Actor;
  readonly destinations: readonly Destination[];
  readonly ports: Ports;
  readonly network: Network;
};

const STATES = ["open", "resolved", "all"] as const;
/** The id of test alerts, which are not stored. */
const TEST_ID = "00000000-0000-7000-8000-000000000000";
const MUTE_MAX_MS = 365 * 86_400_000;

export class Alerts {
  readonly #params: AlertsParams;

  constructor(params: AlertsParams) {
    this.#params = params;
  }

  /** Newest first; by default the open ones. */
  async list(options: AlertListOptions = {}): Promise<AlertPage> {
    const { state = "open", kind, subject, limit = PAGE_DEFAULT, cursor } = options;
    const known = ["state", "kind", "subject", "limit", "cursor"];
    const problems = refuseUnknownMembers(options, known, "alerts.list()");
    problems.push(...limitProblems(limit));
    if (!STATES.includes(state))
      problems.push({ field: "state", message: `must be one of ${STATES.join(", ")}` });
    if (kind !== undefined && !ALERT_KINDS.includes(kind))
      problems.push({ field: "kind", message: `must be one of ${ALERT_KINDS.join(", ")}` });
    if (cursor !== undefined && !isUuid(cursor)) problems.push(CURSOR_PROBLEM);
    if (problems.length > 0) throw new ConfigurationError(problems);
    const records = await (await this.#params.store("alerts.list")).alerts.list({
      limit: limit + 1,
      ...(state === "all" ? {} : { state }),
      ...(kind === undefined ? {} : { kind }),
      ...(subject === undefined ? {} : { subject: { name: String(subject) } }),
      ...(cursor === undefined ? {} : { before: cursor }),
    });
    const { page, last } = pageOf(records, limit);
    return { alerts: page.map(toAlert), nextCursor: last?.id ?? null };
  }

  /**
   * One alert, with its deliveries; null: there is none. Every verb takes the id whole, or six characters or more of its
   * beginning or its end.
   */
  async get(id: string): Promise<Alert | null> {
    const store = await this.#params.store("alerts.get");
    const known = await idOf(store, id);
    return known === null ? null : read(store, known);
  }

  /** Delivers nothing about its kind and subject for this time; afterwards it is delivered if it still holds. */
  async mute(id: string, duration: Duration): Promise<Alert> {
    const forMs = durationMs(duration, "alerts.mute(id, duration)", { max: MUTE_MAX_MS });
    return this.#mark(id, { mark: "mute", forMs });
  }

  /** Marks it as seen; the first author stays. It is resolved when its condition ends. */
  async acknowledge(id: string, author?: By): Promise<Alert> {
    const by = readBy(author, "alerts.acknowledge()") ?? null;
    return this.#mark(id, { mark: "acknowledge", by });
  }

  /** Resolves it by hand, without a delivery; if its condition still holds, the next pass opens another one. */
  async resolve(id: string, author?: By): Promise<Alert> {
    const by = readBy(author, "alerts.resolve()") ?? null;
    return this.#mark(id, { mark: "resolve", by });
  }

  /** Sends a test alert to one or all destinations of this instance, and returns the results. */
  async test(options: { readonly destination?: string } = {}): Promise<AlertTested> {
    const problems = refuseUnknownMembers(options, ["destination"], "alerts.test()");
    if (problems.length > 0) throw new ConfigurationError(problems);
    const { ports, network } = this.#params;
    const chosen = this.#chosen(options.destination);
    const notice = testNotice(new Date(ports.clock.wallMs()));
    const deliveries = await Promise.all(
      chosen.map(async (destination) => {
        const error = await sendNotice(destination, notice, { clock: ports.clock, network });
        return { destination: destination.name, ok: error === null, error };
      }),
    );
    return { ok: deliveries.every(({ ok }) => ok), deliveries };
  }

  #chosen(name: string | undefined): readonly Destination[] {
    const { destinations } = this.#params;
    if (destinations.length === 0) {
      const message = 'has no destination for a test alert; for example [{ slack: "https://…" }]';
      throw new ConfigurationError([{ field: "alerts.to", message }]);
    }
    if (name === undefined) return destinations;
    const found = destinations.filter((each) => each.name === name);
    if (found.length > 0) return found;
    const message = `must be one of ${destinations.map((each) => each.name).join(", ")}`;
    throw new ConfigurationError([{ field: "alerts.test().destination", message }]);
  }

  async #mark(id: string, mark: AlertMark): Promise<Alert> {
    requireName(id, "alert id");
    const store = await this.#params.store(`alerts.${mark.mark}`);
    const known = await idOf(store, id);
    if (known === null) throw new AlertNotFoundError(id);
    const facts = { verb: mark.mark, noun: "alert", name: known } as const;
    const change = mark.mark === "mute" ? `for ${durationWords(mark.forMs)}` : null;
    const by = mark.mark === "mute" ? null : mark.by;
    await store.alerts.mark({
      id: known,
      ...mark,
      audit: auditEntry(this.#params.actor, { ...facts, change }, by),
    });
    const alert = await read(store, known);
    if (!alert) throw new AlertNotFoundError(id);
    return alert;
  }
}

/** The id as it is stored; null: there is no such alert. Throws if several alerts match. */
function idOf({ alerts }: Store, id: string): Promise<string | null> {
  return findId(id, {
    withDigits: (asked) => alerts.withDigits(asked),
    ambiguous: (candidates, hasMore) => new AlertAmbiguousError(id, candidates, hasMore),
  });
}

async function read({ alerts }: Store, id: string): Promise<Alert | null> {
  const [record] = await alerts.list({ id, limit: 1 });
  return record ? toAlert(record) : null;
}

function testNotice(at: Date): AlertNotice {
  return {
    event: "test",
    id: TEST_ID,
    kind: "silent",
    severity: "warning",
    subject: { type: "database", name: "a test" },
    message: "This is a test: alerts of this instance reach you. Nothing is wrong.",
    evidence: {},
    firstAt: at,
    lastAt: at,
    resolvedAt: null,
    resolvedBy: null,
    mutedUntil: null,
    acknowledgedAt: null,
    acknowledgedBy: null,
  };
}
