// `holdfast/fastify`: the handler as a guest of a Fastify server. The instance starts when the server
// is ready and drains when it closes. Where scheduler and worker are both off nothing is started,
// and that is said.

import type { StartOptions } from "../engine/config.js";
import type { Holdfast } from "../engine/holdfast.js";
import type { Logger } from "../telemetry/log.js";
import { createHandler, type HandlerOptions } from "./handler.js";

export type FastifyPluginOptions = HandlerOptions & {
  readonly holdfast: Holdfast;
  /** As `holdfast.start` takes it. @default HOLDFAST_SCHEDULER_ENABLED, HOLDFAST_WORKER_ENABLED */
  readonly start?: StartOptions;
  /** Where the routes are; Fastify's own `prefix` of the registration counts too. */
  readonly prefix?: string;
  /** How long running runs may go on when the server closes. @default "25s" */
  readonly grace?: string | number;
};

/** What of Fastify is used: any version whose server has these will do. */
type Server = {
  readonly prefix: string;
  readonly log: Logger;
  addHook(name: "onReady" | "preClose", hook: () => Promise<void>): unknown;
  addContentTypeParser(type: string, options: object, parser: unknown): unknown;
  removeAllContentTypeParsers(): unknown;
  all(
    path: string,
    handler: (request: GuestRequest, reply: GuestReply) => Promise<unknown>,
  ): unknown;
};
type GuestRequest = {
  readonly method: string;
  readonly url: string;
  readonly protocol: string;
  readonly host?: string;
  readonly hostname: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: unknown;
  readonly ip: string;
};
type GuestReply = {
  status(code: number): GuestReply;
  headers(values: Record<string, string | string[]>): GuestReply;
  send(payload: unknown): GuestReply;
};

export async function holdfastFastify(
  server: Server,
  options: FastifyPluginOptions,
): Promise<void> {
  const { holdfast, start, grace, prefix: _, ...rest } = options;
  holdfast.lendLogger(server.log);
  const handler = createHandler(holdfast, { basePath: server.prefix, logger: server.log, ...rest });
  // The raw body goes to the handler, which has limits of its own.
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("*", {}, async (_request: unknown, payload: unknown) => payload);
  for (const path of ["/", "/*"]) {
    server.all(path, async (request, reply) => {
      const response = await handler(toRequest(request), { remoteAddress: request.ip });
      return reply
        .status(response.status)
        .headers(headersOf(response))
        .send(response.body ?? null);
    });
  }
  server.addHook("onReady", async () => {
    if (isAllOff(start)) {
      server.log.info(
        { holdfast: holdfast.instanceId },
        "scheduler and worker are off: nothing was started",
      );
      return;
    }
    await holdfast.start(start);
  });
  server.addHook("preClose", async () => {
    await holdfast.stop(grace === undefined ? {} : { grace: grace as never });
  });
}

function isAllOff(start: StartOptions | undefined): boolean {
  const isOff = (option: unknown, variable: string) =>
    option === false ||
    (option === undefined && ["false", "0"].includes(process.env[variable] ?? ""));
  return (
    isOff(start?.scheduler, "HOLDFAST_SCHEDULER_ENABLED") &&
    isOff(start?.worker, "HOLDFAST_WORKER_ENABLED")
  );
}

function toRequest(request: GuestRequest): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const each of Array.isArray(value) ? value : [value])
      if (typeof each === "string") headers.append(name, each);
  }
  const host = request.host ?? request.hostname;
  const hasBody = !["GET", "HEAD"].includes(request.method) && request.body != null;
  return new Request(`${request.protocol}://${host}${request.url}`, {
    method: request.method,
    headers,
    ...(hasBody ? { body: request.body as never, duplex: "half" } : {}),
  } as RequestInit);
}

function headersOf(response: Response): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of response.headers) headers[name] = value;
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) headers["set-cookie"] = cookies;
  return headers;
}
