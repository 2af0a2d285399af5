// A simulated marketing API, as a small HTTP server: it issues tokens that expire, limits the rate of requests, fails,
// hangs up, and is strict about dates. A report is ready at the second look. A test can set its next responses.

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export type Mood = "ok" | "rate_limited" | "failing" | "hanging_up" | "forbidding";

export type ActiveAttempt = {
  readonly instanceId: string;
  readonly report: string;
  readonly timeWindowStart: string;
  readonly timeWindowEnd: string;
  readonly idempotencyKey: string;
};

export type MarketingApi = {
  readonly url: string;
  /** Every execution that it accepted, in order. */
  readonly executions: ActiveAttempt[];
  /** Bodies as they arrived, refused ones included. */
  readonly bodies: string[];
  readonly tokensGiven: () => number;
  /** The behaviour for the next calls; then it is healthy again. */
  plan(...moods: Mood[]): void;
  /** Invalidates all tokens issued so far. */
  expireTokens(options?: { readonly forGood?: boolean }): void;
  close(): Promise<void>;
};

const KNOWN_INSTANCES = /^amc-[a-z0-9]+$/;
const DATE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$/;

export async function startMarketingApi(): Promise<MarketingApi> {
  const executions: ActiveAttempt[] = [];
  const bodies: string[] = [];
  const moods: Mood[] = [];
  const looks = new Map<string, number>();
  let tokens = 0;
  let goodFrom = 1;
  let isExpiredForGood = false;

  const server = createServer(async (request, response) => {
    const answer = (status: number, body: object, headers: Record<string, string> = {}) => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(body));
    };
    const text = await bodyOf(request);
    if (request.url === "/token") return answer(200, { token: `token-${++tokens}` });
    if (request.method === "POST") bodies.push(text);
    const mood = moods.shift() ?? "ok";
    if (mood === "hanging_up") return void request.socket.destroy();
    if (mood === "rate_limited") return answer(429, { error: "slow down" }, { "retry-after": "5" });
    if (mood === "failing") return answer(503, { error: "try again" });
    if (mood === "forbidding") return answer(403, { error: "no permission for this instance" });
    const token = Number(request.headers.authorization?.replace("Bearer token-", ""));
    if (!(token >= goodFrom) || isExpiredForGood) return answer(401, { error: "token expired" });
    const looked = /^\/executions\/execution-(\d+)$/.exec(request.url ?? "")?.[1];
    if (looked !== undefined) {
      looks.set(looked, (looks.get(looked) ?? 0) + 1);
      return answer(200, { rows: looks.get(looked) === 1 ? null : Number(looked) % 7 });
    }
    const asked = JSON.parse(text) as Omit<ActiveAttempt, "idempotencyKey">;
    if (!KNOWN_INSTANCES.test(asked.instanceId)) return answer(400, { error: "unknown instance" });
    if (!DATE.test(asked.timeWindowStart) || !DATE.test(asked.timeWindowEnd))
      return answer(400, { error: "dates are written as 2026-01-15T00:00:00, without a zone" });
    const idempotencyKey = String(request.headers["idempotency-key"]);
    const known = executions.findIndex((each) => each.idempotencyKey === idempotencyKey);
    if (known < 0) executions.push({ ...asked, idempotencyKey });
    const number = known < 0 ? executions.length : known + 1;
    return answer(202, { executionId: `execution-${number}` });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    executions,
    bodies,
    tokensGiven: () => tokens,
    plan: (...next) => void moods.push(...next),
    expireTokens: ({ forGood = false } = {}) => {
      goodFrom = tokens + 1;
      isExpiredForGood = forGood;
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}
