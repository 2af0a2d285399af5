// `holdfast/http`: the handler, for whatever speaks Request and Response.

export type { Authorize, Authorized } from "./access.js";
export {
  type ConnectionInfo,
  createHandler,
  type Handler,
  type HandlerOptions,
} from "./handler.js";
export type { SecretOptions } from "./secrets.js";
export type { Scope } from "./wire/schemas.js";
