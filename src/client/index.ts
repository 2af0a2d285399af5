// `holdfast/client`: the HTTP API with types, and the loop of a worker elsewhere. It speaks HTTP alone:
// no driver and no engine come with it. Instants are ISO 8601 texts, as on the wire.

import { systemIds } from "../shared/adapters/random.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { type AnswerOf, type BodyOf, type QueryOf, Wire } from "./wire.js";
import { type WorkOptions, work } from "./work.js";

export { PermanentError } from "../shared/errors.js";
export { NoAnswerError, RequestRefusedError, WorkerStoppedError } from "./errors.js";
export type { Handler, LogLevel, WorkContext } from "./held.js";
export type { WorkOptions } from "./work.js";

export type ClientOptions = {
  /** Where the handler is mounted, for example "https://jobs.example.com" or "http://127.0.0.1:4780". */
  readonly url: string;
  /** The secret of the scope that is needed. */
  readonly secret?: string | undefined;
  /** @default the global one */
  readonly fetch?: typeof globalThis.fetch | undefined;
};

export type RemoteRun = AnswerOf<"getRun">;
export type RemoteSchedule = AnswerOf<"getSchedule">;
export type EnqueueOptions = Omit<BodyOf<"enqueue">, "input">;
export type TriggerOptions = BodyOf<"trigger">;
/** It began, it is done, or it failed; done if nothing is said. */
export type PingOptions =
  | ({ readonly state?: "ok" | undefined } & BodyOf<"ping">)
  | { readonly state: "start" }
  | ({ readonly state: "fail" } & BodyOf<"pingFail">);

export type Client = ReturnType<typeof createClient>;

const ids = systemIds();

/** What may safely be asked again is, when no answer came; what may not is told by a `NoAnswerError`. */
export function createClient(options: ClientOptions) {
  const wire = new Wire(readOptions(options));
  const trigger = (name: string, given: TriggerOptions = {}): Promise<AnswerOf<"trigger">> =>
    wire.call<"trigger">({
      place: { method: "POST", path: "/api/schedules/{name}/trigger" },
      params: { name },
      // Equal deliveries are one: so this call can be repeated.
      body: { deliveryId: ids.unique(), ...given },
      isRepeatable: true,
    });
  /** Repeated when no answer came: the same twice changes nothing. */
  const ping = (name: string, given: PingOptions = {}): Promise<AnswerOf<"ping">> => {
    const { state = "ok", ...rest } = given;
    const asked = { params: { monitor: name }, isRepeatable: true } as const;
    const method = "POST";
    if (state === "start")
      return wire.call<"pingStart">({
        ...asked,
        place: { method, path: "/api/ping/{monitor}/start" },
        body: rest as Record<string, never>,
      });
    const body = { deliveryId: ids.unique(), ...rest };
    return state === "fail"
      ? wire.call<"pingFail">({
          ...asked,
          place: { method, path: "/api/ping/{monitor}/fail" },
          body,
        })
      : wire.call<"ping">({ ...asked, place: { method, path: "/api/ping/{monitor}" }, body });
  };
  return {
    /** Stores a run. Without a `key` it is not repeated when its answer is lost. */
    enqueue: (job: string, input?: unknown, given: EnqueueOptions = {}) =>
      wire.call<"enqueue">({
        place: { method: "POST", path: "/api/jobs/{name}/runs" },
        params: { name: job },
        body: { ...(input === undefined ? {} : { input }), ...given },
        isRepeatable: given.key !== undefined,
      }),
    trigger,
    /** Checks in for what a monitor watches: it began, it is done, it failed. */
    ping,
    /** One bounded pass. Never repeated: the next one makes up for it. */
    tick: (given: BodyOf<"tick"> = {}) =>
      wire.call<"tick">({
        place: { method: "POST", path: "/api/tick" },
        body: given,
        isRepeatable: false,
        timeoutMs: 120_000,
      }),
    runs: {
      /** Null where there is none. */
      get: (id: string): Promise<RemoteRun | null> =>
        orNull(
          wire.call<"getRun">({
            place: { method: "GET", path: "/api/runs/{id}" },
            params: { id },
            isRepeatable: true,
          }),
        ),
      list: (query: QueryOf<"listRuns"> = {}) =>
        wire.call<"listRuns">({
          place: { method: "GET", path: "/api/runs" },
          query,
          isRepeatable: true,
        }),
      cancel: (id: string) =>
        wire.call<"cancelRun">({
          place: { method: "POST", path: "/api/runs/{id}/cancel" },
          params: { id },
          body: {},
          isRepeatable: true,
        }),
      /** Not repeated: the run may have been executed and failed again meanwhile. */
      retry: (id: string) =>
        wire.call<"retryRun">({
          place: { method: "POST", path: "/api/runs/{id}/retry" },
          params: { id },
          body: {},
          isRepeatable: false,
        }),
    },
    schedules: {
      /** Null where there is none. */
      get: (name: string): Promise<RemoteSchedule | null> =>
        orNull(
          wire.call<"getSchedule">({
            place: { method: "GET", path: "/api/schedules/{name}" },
            params: { name },
            isRepeatable: true,
          }),
        ),
      list: (query: QueryOf<"listSchedules"> = {}) =>
        wire.call<"listSchedules">({
          place: { method: "GET", path: "/api/schedules" },
          query,
          isRepeatable: true,
        }),
      upsert: (
        name: string,
        definition: BodyOf<"putSchedule">,
        query: QueryOf<"putSchedule"> = {},
      ) =>
        wire.call<"putSchedule">({
          place: { method: "PUT", path: "/api/schedules/{name}" },
          params: { name },
          query,
          body: definition,
          isRepeatable: true,
        }),
      pause: (name: string, note?: string) =>
        wire.call<"pauseSchedule">({
          place: { method: "POST", path: "/api/schedules/{name}/pause" },
          params: { name },
          body: note === undefined ? {} : { note },
          isRepeatable: true,
        }),
      resume: (name: string) =>
        wire.call<"resumeSchedule">({
          place: { method: "POST", path: "/api/schedules/{name}/resume" },
          params: { name },
          body: {},
          isRepeatable: true,
        }),
      trigger,
    },
    /** Executes runs here until `signal` aborts; resolves when all of them have ended. */
    work: (given: WorkOptions): Promise<void> => work(wire, given),
  };
}

async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if ((error as { readonly status?: unknown }).status === 404) return null;
    throw error;
  }
}

function readOptions({ url, secret, fetch = globalThis.fetch }: ClientOptions) {
  const problems: Problem[] = [];
  if (typeof url !== "string" || !/^https?:\/\/[^\s?#]+$/.test(url))
    problems.push({
      field: "createClient().url",
      message: 'must be an address, for example "https://jobs.example.com"',
    });
  if (secret !== undefined && !/^[\x21-\x7e]+$/.test(secret))
    problems.push({
      field: "createClient().secret",
      message: "must be a secret: visible ASCII characters without spaces",
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { url: url.replace(/(?<!\/)\/+$/, ""), secret, fetch };
}
