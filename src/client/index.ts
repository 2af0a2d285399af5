// `holdfast/client`: calls the HTTP API with types, and runs the loop of a remote worker, for programs without access to the
// database. Instants are ISO 8601 texts, as on the wire. This folder must never import a driver, the engine or code of the server:
// only types of the wire and pure helpers.

import { systemIds } from "../shared/adapters/random.js";
import { ConfigurationError, type Problem } from "../shared/errors.js";
import { type BodyOf, type QueryOf, type ResponseOf, Wire } from "./wire.js";
import { type WorkOptions, work } from "./work.js";

export { PermanentError } from "../shared/errors.js";
export { NoAnswerError, RequestRefusedError, WorkerStoppedError } from "./errors.js";
export type { Handler, LogLevel, WorkContext } from "./held-run.js";
export type { WorkOptions } from "./work.js";

export type ClientOptions = {
  /** Where the handler is mounted, for example "https://jobs.example.com" or "http://127.0.0.1:4780". */
  readonly url: string;
  /** A secret of the scope that the calls need. */
  readonly secret?: string | undefined;
  /** @default the global one */
  readonly fetch?: typeof globalThis.fetch | undefined;
};

export type RemoteRun = ResponseOf<"getRun">;
export type RemoteSchedule = ResponseOf<"getSchedule">;
export type EnqueueOptions = Omit<BodyOf<"enqueue">, "input">;
/** Without a `value` it is null. */
export type SignalOptions = BodyOf<"sendSignal">;
export type TriggerOptions = BodyOf<"trigger">;
/** A schedule has exactly one of the three. */
type OneTime =
  | { readonly cron: string; readonly every?: undefined; readonly at?: undefined }
  | { readonly every: number | string; readonly cron?: undefined; readonly at?: undefined }
  | { readonly at: string; readonly cron?: undefined; readonly every?: undefined };
export type ScheduleDefinition = BodyOf<"putSchedule"> & OneTime;
/** The work began, is done or failed; done by default. */
export type PingOptions =
  | ({ readonly state?: "ok" | undefined } & BodyOf<"ping">)
  | { readonly state: "start" }
  | ({ readonly state: "fail" } & BodyOf<"pingFail">);

export type Client = ReturnType<typeof createClient>;

const ids = systemIds();

/** Repeats calls without a response if a repetition is safe; otherwise throws a `NoAnswerError`. */
export function createClient(options: ClientOptions) {
  const wire = new Wire(readOptions(options));
  const trigger = (name: string, given: TriggerOptions = {}): Promise<ResponseOf<"trigger">> =>
    wire.call<"trigger">({
      place: { method: "POST", path: "/api/schedules/{name}/trigger" },
      params: { name },
      // Deliveries with the same id count once, so this call can be repeated.
      body: { deliveryId: ids.unique(), ...given },
      isRepeatable: true,
    });
  /** Repeated if no response arrives: the same check-in twice changes nothing. */
  const ping = (name: string, given: PingOptions = {}): Promise<ResponseOf<"ping">> => {
    const { state = "ok", ...rest } = given;
    const call = { params: { monitor: name }, isRepeatable: true } as const;
    const method = "POST";
    if (state === "start")
      return wire.call<"pingStart">({
        ...call,
        place: { method, path: "/api/ping/{monitor}/start" },
        body: rest as Record<string, never>,
      });
    const body = { deliveryId: ids.unique(), ...rest };
    return state === "fail"
      ? wire.call<"pingFail">({
          ...call,
          place: { method, path: "/api/ping/{monitor}/fail" },
          body,
        })
      : wire.call<"ping">({ ...call, place: { method, path: "/api/ping/{monitor}" }, body });
  };
  return {
    /** Stores a run. Without a `key` the call is not repeated if its response is lost. */
    enqueue: (job: string, input?: unknown, given: EnqueueOptions = {}) =>
      wire.call<"enqueue">({
        place: { method: "POST", path: "/api/jobs/{name}/runs" },
        params: { name: job },
        body: { ...(input === undefined ? {} : { input }), ...given },
        isRepeatable: given.key !== undefined,
      }),
    /** Sends a signal to the runs that wait for it, now or later. Repeated if no response arrives: an equal value changes nothing. */
    signal: (name: string, given: SignalOptions) =>
      wire.call<"sendSignal">({
        place: { method: "POST", path: "/api/signals/{name}" },
        params: { name },
        body: given,
        isRepeatable: true,
      }),
    trigger,
    /** Checks in for the work that a monitor watches: it began, is done or failed. */
    ping,
    /** One bounded pass. Never repeated: the next pass makes up for a lost one. */
    tick: (given: BodyOf<"tick"> = {}) =>
      wire.call<"tick">({
        place: { method: "POST", path: "/api/tick" },
        body: given,
        isRepeatable: false,
        timeoutMs: 120_000,
      }),
    runs: {
      /** Null if it does not exist. */
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
      /** Not repeated: the run may have been executed and have failed again in between. */
      retry: (id: string, given: BodyOf<"retryRun"> = {}) =>
        wire.call<"retryRun">({
          place: { method: "POST", path: "/api/runs/{id}/retry" },
          params: { id },
          body: given,
          isRepeatable: false,
        }),
    },
    schedules: {
      /** Executes it if it is due and free; resolves when its run has ended. Never repeated. */
      runIfDue: (name: string, given: BodyOf<"runIfDue"> = {}) =>
        wire.call<"runIfDue">({
          place: { method: "POST", path: "/api/schedules/{name}/run-if-due" },
          params: { name },
          body: given,
          isRepeatable: false,
          timeoutMs: 3_660_000,
        }),
      /** Null if it does not exist. */
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
      upsert: (name: string, definition: ScheduleDefinition, query: QueryOf<"putSchedule"> = {}) =>
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
    /** Executes runs in this process until `signal` aborts; resolves when all of them have ended. */
    work: (given: WorkOptions): Promise<void> => work(wire, given),
  };
}

async function orNull<T>(response: Promise<T>): Promise<T | null> {
  try {
    return await response;
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
