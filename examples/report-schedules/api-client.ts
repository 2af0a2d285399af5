// What speaks to the marketing API. A token that has expired is replaced once for a call; if the new one is
// refused as well, trying again would not help. Everything else is told as it is: the classes of errors
// (rate limits and broken connections are tried again, refusals are not) are Holdfast's.

import { PermanentError } from "holdfast";

export type ReportRequest = {
  readonly instanceId: string;
  readonly report: string;
  readonly timeWindowStart: string;
  readonly timeWindowEnd: string;
};

export type ReportAnswer = { readonly executionId: string; readonly rows: number };

export class ApiClient {
  readonly #url: string;
  #token: Promise<string> | null = null;

  constructor(url: string) {
    this.#url = url;
  }

  async execute(
    request: ReportRequest,
    { idempotencyKey, signal }: { readonly idempotencyKey: string; readonly signal: AbortSignal },
  ): Promise<ReportAnswer> {
    const ask = async () =>
      fetch(`${this.#url}/executions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${await this.#currentToken()}`,
          "content-type": "application/json",
          "idempotency-key": idempotencyKey,
        },
        body: JSON.stringify(request),
        signal,
      });
    let response = await ask();
    if (response.status === 401) {
      this.#token = null;
      response = await ask();
      if (response.status === 401)
        throw new PermanentError("the API refuses a new token too", { code: "TOKEN_REFUSED" });
    }
    if (!response.ok) throw new ApiError(response, await response.text());
    return (await response.json()) as ReportAnswer;
  }

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

/** Its status and `retry-after` are what the error is classified by. */
class ApiError extends Error {
  readonly status: number;
  readonly headers: Headers;

  constructor(response: Response, text: string) {
    super(`the API answered ${response.status}: ${text}`);
    this.name = "ApiError";
    this.status = response.status;
    this.headers = response.headers;
  }
}
