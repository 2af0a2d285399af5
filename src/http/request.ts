// What is asked and what is answered, whoever serves it. Both are plain, so that a server need not make a Request and a
// Response of them; here is their way from and to those, for the servers that speak them. Why: docs/decisions/0007-http-on-plain-values.md

export type HttpRequest = {
  readonly method: string;
  /** Whole: "http://127.0.0.1:4780/api/runs?limit=1". */
  readonly url: string;
  readonly headers: Pick<Headers, "get" | "has">;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
  /** Null: nothing was sent. */
  readonly body: BodySource | null;
  /** The same as a Request, for a user's own check. */
  readonly request: Request;
};

/** The bytes of a body, which come when they come. */
export type BodySource = {
  /** Hands on every piece, and resolves at the end; what `take` throws ends it. Once. */
  read(take: (piece: Uint8Array) => void): Promise<void>;
  /** Nothing more is wanted: `read` resolves now. */
  cancel(): void;
};

export type HttpResponse = {
  readonly status: number;
  /** Their names in lower case. */
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
    // Looked at when it is read: a check that cloned the request has left another stream in its place.
    get body() {
      return request.body === null ? null : sourceOf(request.body);
    },
    request,
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
