// `holdfast/fastify`: serves the handler inside a Fastify server. The instance starts when the server is ready and drains when
// it closes. If scheduler and worker are both off, it logs that and starts nothing.

import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { Holdfast } from "../holdfast.js";
import type { StartOptions } from "../instance/config.js";
import { serverInternals } from "../instance/server-internals.js";
import type { Logger } from "../telemetry/log.js";
import { createHttpHandler, type HandlerOptions } from "./handler.js";
import { NO_URL, NodeHttpRequest, noAddress, urlOf } from "./node.js";
import { refused } from "./pipeline.js";
import type { HttpResponse } from "./request.js";

export type FastifyPluginOptions = HandlerOptions & {
  readonly holdfast: Holdfast;
  /** As `holdfast.start` takes it. @default HOLDFAST_SCHEDULER_ENABLED, HOLDFAST_WORKER_ENABLED */
  readonly start?: StartOptions | undefined;
  /** The path of the routes; Fastify's own `prefix` of the registration counts too. */
  readonly prefix?: string | undefined;
  /** How long running runs may go on when the server closes. @default "25s" */
  readonly grace?: string | number | undefined;
};

/** The part of Fastify that the plugin uses; any version that has it works. */
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
  readonly url: string;
  readonly protocol: string;
  readonly host?: string;
  readonly hostname: string;
  readonly raw: IncomingMessage;
  /** The raw body stream, as the parser below passes it on. */
  readonly body: unknown;
  readonly ip: string;
};
type GuestReply = {
  readonly raw: ServerResponse;
  status(code: number): GuestReply;
  headers(values: Record<string, string>): GuestReply;
  send(payload: unknown): GuestReply;
};

export async function holdfastFastify(
  server: Server,
  options: FastifyPluginOptions,
): Promise<void> {
  const { holdfast, start, grace, prefix: _, ...rest } = options;
  holdfast[serverInternals].lendLogger(server.log);
  const handler = createHttpHandler(holdfast, {
    basePath: server.prefix,
    logger: server.log,
    ...rest,
  });
  // The handler reads the raw body within its own limits.
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("*", {}, async (_request: unknown, payload: unknown) => payload);
  for (const path of ["/", "/*"]) {
    server.all(path, async (request, reply) => {
      const { protocol, host = request.hostname, url: target, raw: incoming, body } = request;
      const url = urlOf({ protocol, host, target });
      const payload = body instanceof Readable ? body : incoming;
      const httpRequest = new NodeHttpRequest({
        incoming,
        outgoing: reply.raw,
        url: url ?? NO_URL,
        payload,
      });
      const response =
        url === null
          ? refused(httpRequest, noAddress())
          : await handler(httpRequest, { remoteAddress: request.ip });
      return reply
        .status(response.status)
        .headers(response.headers)
        .send(contentOf(response, httpRequest.method));
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

/** An empty string for no content: Fastify would send null as the word "null". */
function contentOf({ content }: HttpResponse, method: string): unknown {
  if (method === "HEAD" || content === null) return "";
  return content instanceof Uint8Array
    ? Buffer.from(content.buffer, content.byteOffset, content.byteLength)
    : content;
}
