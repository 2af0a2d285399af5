// Sends one HTTP request to exactly the given address, on a connection of its own. It checks no address: callers do so
// before.

import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { PinnedRequest, PinnedResponse } from "../ports.js";

export async function sendPinned(request: PinnedRequest): Promise<PinnedResponse> {
  const socket = await connected(request);
  try {
    request.signal.throwIfAborted();
    request.onConnected();
    return await exchanged(socket, request);
  } finally {
    socket.destroy();
  }
}

/** Resolves when bytes can be sent: for https, when the certificate was verified. */
function connected({ address, port, tlsName, signal }: PinnedRequest): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket =
      tlsName === null
        ? connectTcp({ host: address, port })
        : connectTls({ host: address, port, ...identity(tlsName), ALPNProtocols: ["http/1.1"] });
    const over = (settle: () => void) => () => {
      signal.removeEventListener("abort", onAbort);
      settle();
    };
    const onAbort = () => {
      socket.destroy();
      over(() => reject(signal.reason))();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once(
      tlsName === null ? "connect" : "secureConnect",
      over(() => resolve(socket)),
    );
    // This listener stays: a connection may break at any time, and an unhandled error event ends the process.
    socket.on("error", (error) => over(() => reject(error))());
  });
}

/** The certificate also proves an IP address, but TLS cannot send one as a server name. */
function identity(tlsName: string) {
  const isName = /[a-z]/i.test(tlsName) && !tlsName.includes(":");
  return isName ? { servername: tlsName } : {};
}

function exchanged(socket: Socket, params: PinnedRequest): Promise<PinnedResponse> {
  const { method, path, headers, body, bytesMax, signal } = params;
  return new Promise((resolve, reject) => {
    const request: ClientRequest = httpRequest({
      createConnection: () => socket,
      method,
      path,
      headers: { ...headers, "content-length": String(body.byteLength), connection: "close" },
      setHost: false,
      signal,
    });
    request.on("error", reject);
    request.once("response", (response) => {
      read(response, bytesMax).then(resolve, reject);
    });
    request.end(body);
  });
}

async function read(response: IncomingMessage, bytesMax: number): Promise<PinnedResponse> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    chunks.push(chunk.subarray(0, bytesMax - bytes));
    bytes += chunk.byteLength;
    // The rest of the body is not needed.
    if (bytes > bytesMax) break;
  }
  return {
    status: response.statusCode ?? 0,
    headers: headersOf(response),
    body: joined(chunks),
    isCut: bytes > bytesMax,
  };
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    headers.append(rawHeaders[at] as string, rawHeaders[at + 1] as string);
  }
  return headers;
}
