// Keeps the log lines of remote workers with their runs, within the same limits as the lines of a handler: so
// many lines and characters of an attempt. Lines beyond them are counted, and a last line says how many.

import { droppedLine, keptMessage, type LogsPolicy, linesWithin } from "../runs/rules/run-logs.js";
import type { Ports } from "../shared/ports.js";
import type { HeldRun } from "../store/remote.js";
import type { Claim, Grant, Store } from "../store/store.js";
import type { RemoteLine } from "./claims.js";

type Sent = {
  readonly store: Store;
  readonly held: HeldRun<Claim>;
  readonly grant: Grant;
  readonly lines: readonly RemoteLine[];
  /** The number of the first line; undefined: after the last one. */
  readonly from: number | undefined;
};

export class RemoteLogs {
  readonly #ports: Ports;
  readonly #logsOf: (job: string) => LogsPolicy;
  /** The last call of each grant that is under way: the next one has to count its lines. */
  readonly #underWay = new Map<string, Promise<unknown>>();

  constructor(params: {
    readonly ports: Ports;
    /** Which lines of a job are kept, and how many. */
    readonly logsOf: (job: string) => LogsPolicy;
  }) {
    this.#ports = params.ports;
    this.#logsOf = params.logsOf;
  }

  /** `isRefused`: the run is no longer held under this fence. */
  async append(sent: Sent): Promise<{ readonly isRefused: boolean }> {
    const { id, fence } = sent.grant;
    const name = `${id} ${fence}`;
    const before = this.#underWay.get(name) ?? Promise.resolve();
    const appending = before.catch(() => undefined).then(() => this.#append(sent));
    this.#underWay.set(name, appending);
    try {
      return await appending;
    } finally {
      if (this.#underWay.get(name) === appending) this.#underWay.delete(name);
    }
  }

  async #append({ store, held, grant, lines, from }: Sent): Promise<{ isRefused: boolean }> {
    const nowMs = this.#ports.clock.wallMs();
    const agoMs = (at: Date) => Math.min(Math.max(0, nowMs - at.getTime()), held.heldMs);
    const last = from === undefined ? 0 : from + lines.length - 1;
    const kept = await store.keptLog({ ...grant, first: from ?? 0, last });
    const first = from ?? Math.max(kept.last, kept.droppedTo) + 1;
    const numbered = lines.map(({ at, level, message }, index) => ({
      ...grant,
      no: first + index,
      level,
      agoMs: at === undefined ? 0 : agoMs(at),
      message: keptMessage(message),
      fields: null,
    }));
    const within = linesWithin(numbered, kept, this.#logsOf(held.claim.job));
    const isMore = within.dropped !== null && within.dropped.dropped > kept.dropped;
    const marker = within.dropped && {
      ...grant,
      no: within.last + 1,
      level: "warn" as const,
      agoMs: 0,
      ...droppedLine(within.dropped),
    };
    const written = marker && isMore ? [...within.lines, marker] : within.lines;
    if (written.length === 0) return { isRefused: false };
    const refused = await store.appendLogs({ holder: held.holder, lines: written });
    return { isRefused: refused.length > 0 };
  }
}
