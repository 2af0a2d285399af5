// The types of the wire, from the contract. Only types: no server code reaches the page.

import type { z } from "zod";
import type { ROUTES } from "../../src/http/wire/contract.js";
import type { Scope } from "../../src/http/wire/schemas.js";

export type { Scope };

type Routes = typeof ROUTES;
export type RouteName = keyof Routes;
type Parsed<T> = T extends z.ZodType ? z.output<T> : never;

export type AnswerOf<K extends RouteName> = Parsed<
  Routes[K]["responses"][keyof Routes[K]["responses"]]
>;
export type BodyOf<K extends RouteName> = Routes[K] extends { readonly body: infer B }
  ? B extends z.ZodType
    ? z.input<B>
    : never
  : undefined;
export type QueryOf<K extends RouteName> = Routes[K] extends { readonly query: infer Q }
  ? Q extends z.ZodType
    ? { readonly [N in keyof z.input<Q>]?: string | number | undefined }
    : never
  : undefined;
export type PlaceOf<K extends RouteName> = `${Routes[K]["method"]} ${Routes[K]["path"]}`;

export type Me = AnswerOf<"me">;
export type Run = AnswerOf<"getRun">;
export type RunStatus = Run["status"];
export type Attempt = AnswerOf<"listAttempts">["attempts"][number];
export type Step = AnswerOf<"listSteps">["steps"][number];
export type Exchange = AnswerOf<"listExchanges">["exchanges"][number];
export type LogLine = AnswerOf<"listLogs">["lines"][number];
export type Schedule = AnswerOf<"getSchedule">;
export type ScheduleVersion = AnswerOf<"versions">["versions"][number];
export type Explanation = AnswerOf<"explain">;
export type Timeline = AnswerOf<"timeline">;
export type TimelineRow = Timeline["schedules"][number];
export type TimelineTicks = TimelineRow["ticks"][number];
export type Tick = AnswerOf<"listTicks">["ticks"][number];
export type Instance = AnswerOf<"listInstances">["instances"][number];
export type Queue = AnswerOf<"listQueues">["queues"][number];
export type Lock = AnswerOf<"listLocks">["locks"][number];
export type Grant = AnswerOf<"lockHistory">["grants"][number];
export type Alert = AnswerOf<"listAlerts">["alerts"][number];
export type Check = AnswerOf<"check">["checks"][number];
export type AuditEntry = AnswerOf<"listAudit">["entries"][number];
export type Stats = AnswerOf<"stats">;
