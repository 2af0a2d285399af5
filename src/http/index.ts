// `holdfast/http`: exports the handler for servers that have Request and Response.

export type { Authorize, Authorized } from "./access.js";
export type { SecretOptions } from "./credentials.js";
export {
  type ConnectionInfo,
  createHandler,
  type Handler,
  type HandlerOptions,
} from "./handler.js";
export type { Scope } from "./wire/schemas.js";
