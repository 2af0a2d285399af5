// The client of the marketing API. A call gets a new token if the API refuses the one at hand; if it refuses the new one as
// well, trying again would not help. Which other errors are tried again is Holdfast's to know: rate limits and broken
// connections are, refusals are not.

import { PermanentError } from "holdfast";

type Caller = { readonly idempotencyKey: string; readonly signal: AbortSignal };

export class ApiClient {
  #token = "none yet";

  constructor(readonly url: string) {}

  start(request: object, caller: Caller) {
    return this.#call<{ executionId: string }>("/executions", caller, {
      method: "POST",
      body: JSON.stringify(request),
    });
  }

  /** `rows` is null until the report is ready. */
  look(executionId: string, caller: Caller) {
    return this.#call<{ rows: number | null }>(`/executions/${executionId}`, caller);
  }

  async #call<T>(path: string, { idempotencyKey, signal }: Caller, init: RequestInit = {}) {
    const ask = () => {
      const headers = {
        authorization: `Bearer ${this.#token}`,
        "content-type": "application/json",
        "idempotency-key": idempotencyKey,
      };
      return fetch(this.url + path, { ...init, headers, signal });
    };
    const response = await ask();
    if (response.status !== 401) return bodyOf<T>(response);
    const renewed = await fetch(`${this.url}/token`, { method: "POST", signal });
    this.#token = (await bodyOf<{ token: string }>(renewed)).token;
    const again = await ask();
    if (again.status === 401)
      throw new PermanentError("the API refuses a new token too", { code: "TOKEN_REFUSED" });
    return bodyOf<T>(again);
  }
}

async function bodyOf<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const { status, headers } = response;
  const error = new Error(`the API answered ${status}: ${await response.text()}`);
  // Its status and `retry-after` are what the error is classified by.
  throw Object.assign(error, { status, headers });
}
