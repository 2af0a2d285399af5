// Converts errors that remote workers report, within the limits of stored errors and without known secrets.

import { keptMessage } from "../runs/rules/run-logs.js";
import type { StoredError } from "../shared/failure.js";
import { storableText } from "../shared/json.js";

const CODE_LENGTH_MAX = 64;

export type RemoteError = {
  readonly code?: string | undefined;
  readonly message: string;
  readonly stack?: string | undefined;
};

export function toStoredError({ code = "REMOTE", message, stack }: RemoteError): StoredError {
  return {
    code: storableText(code, CODE_LENGTH_MAX),
    name: "RemoteError",
    message: keptMessage(message),
    ...(stack === undefined ? {} : { stack: keptMessage(stack) }),
  };
}
