// The client of the marketing API. It replaces a token that has expired once for a call; if the API refuses the new
// one as well, trying again would not help. Which other errors are tried again is Holdfast's to know: rate limits and
// broken connections are, refusals are not.

import { PermanentError } from "holdfast";

export type ReportRequest = {
  readonly instanceId: string;
  readonly report: string;
  readonly timeWindowStart: string;
  readonly timeWindowEnd: string;
};

type Caller = { readonly idempotencyKey: string; readonly signal: AbortSignal };

export class ApiClient {
  readonly #url: string;
  #token: Promise<string> | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  start(request: ReportRequest, caller: Caller): Promise<{ readonly executionId: string }> {
    return this.#call("/executions", caller, { method: "POST", body: JSON.stringify(request) });
  }

  /** `rows` is null until the report is ready. */
  look(executionId: string, caller: Caller): Promise<{ readonly rows: number | null }> {
    return this.#call(`/executions/${executionId}`, caller, {});
  }

  async #call<T>(path: string, { idempotencyKey, signal }: Caller, init: RequestInit): Promise<T> {
    const ask = async () => {
      const headers = {
        authorization: `Bearer ${await this.#currentToken()}`,
        "content-type": "application/json",
        "idempotency-key": idempotencyKey,
      };
      return fetch(this.#url + path, { ...init, headers, signal });
    };
    let response = await ask();
    if (response.status === 401) {
      this.#token = null;
      response = await ask();
      if (response.status === 401)
        throw new PermanentError("the API refuses a new token too", { code: "TOKEN_REFUSED" });
    }
    if (response.ok) return (await response.json()) as T;
    const { status, headers } = response;
    // Its status and `retry-after` are what the error is classified by.
    throw Object.assign(new Error(`the API answered ${status}: ${await response.text()}`), {
      status,
      headers,
    });
  }

  /** A token that could not be fetched is asked for again by the next call. */
  #currentToken(): Promise<string> {
    this.#token ??= fetch(`${this.#url}/token`, { method: "POST" })
      .then((response) => response.json() as Promise<{ token: string }>)
      .then(({ token }) => token)
      .catch((error: unknown) => {
        this.#token = null;
        throw error;
      });
    return this.#token;
  }
}
