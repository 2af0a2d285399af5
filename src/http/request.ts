// Defines the plain request and response of the handler, and converts them from and to the platform's Request and Response. A
// server of our own makes neither. Why: docs/decisions/0007-http-on-plain-values.md

export type HttpRequest = {
  readonly method: string;
  /** The full URL: "http://127.0.0.1:4780/api/runs?limit=1". */
  readonly url: string;
  readonly headers: Pick<Headers, "get" | "has">;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Null: the request has no body. */
  readonly body: BodySource | null;
  /** The platform Request, for the user's `authorize`. */
  readonly platformRequest: Request;
};

/** The request body, streamed. */
export type BodySource = {
  /** Passes every chunk to `take` and resolves at the end; an error of `take` ends it. Can be called once. */
  read(take: (piece: Uint8Array) => void): Promise<void>;
  /** Stops reading: `read` resolves now. */
  cancel(): void;
};

export type HttpResponse = {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly content: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
};

export function requestOf(request: Request): HttpRequest {
  return {
    method: request.method,
    url: request.url,
    headers: request.headers,
    get signal() {
      return request.signal;
    },
    // Read late: `authorize` may have cloned the request, which replaces its stream.
    get body() {
      return request.body === null ? null : sourceOf(request.body);
    },
    platformRequest: request,
  };
}

export function responseOf({ status, headers, content }: HttpResponse, method: string): Response {
  return new Response(method === "HEAD" ? null : content, { status, headers });
}

function sourceOf(stream: ReadableStream<Uint8Array>): BodySource {
  let reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  const cancel = () => void reader?.cancel().catch(() => undefined);
  return {
    async read(take) {
      reader = stream.getReader();
      try {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) return;
          take(value);
        }
      } finally {
        cancel();
      }
    },
    cancel,
  };
}
