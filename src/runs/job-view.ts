// Jobs as people see them: `holdfast.jobs()`, what was announced, with durations as one would write them.

import { writeDuration } from "../shared/duration.js";
import type { JobAnnouncement } from "../store/store.js";
import type { OnLost } from "./rules/run.js";

export type AnnouncedJob = {
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  readonly version: number;
  readonly policy: {
    readonly lease: string;
    readonly timeout: string;
    readonly retry: {
      readonly attempts: number;
      readonly delay: string;
      readonly factor: number;
      readonly max: string;
      readonly jitter: number;
    };
    readonly onLost: OnLost;
  };
  /** What an input looks like, as JSON Schema; null where nobody could tell. */
  readonly inputSchema: unknown;
};

export function toAnnouncedJob({ policy, inputSchema, ...job }: JobAnnouncement): AnnouncedJob {
  const { leaseMs, timeoutMs, retry, onLost } = policy;
  const { delayMs, maxMs, attempts, factor, jitter } = retry;
  return {
    ...job,
    policy: {
      lease: writeDuration(leaseMs),
      timeout: writeDuration(timeoutMs),
      retry: {
        attempts,
        delay: writeDuration(delayMs),
        factor,
        max: writeDuration(maxMs),
        jitter,
      },
      onLost,
    },
    inputSchema: inputSchema ? (JSON.parse(inputSchema) as unknown) : null,
  };
}
