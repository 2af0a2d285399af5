// What the programs in these pages take for granted: the reader's own functions, jobs and handles, each
// named in a snippet that does not make it. test/snippets.test.ts compiles every snippet beside this file.

type Any = ReturnType<typeof JSON.parse>;
type AnyJob = import("holdfast").Job<Any, Any>;

// Holdfast itself, where a page has shown before how one is made.
declare const holdfast: import("holdfast").Holdfast;
declare const Holdfast: typeof import("holdfast").Holdfast;
declare const ctx: import("holdfast").RunContext;
declare const handler: import("holdfast/http").Handler;
declare const createTestHoldfast: typeof import("holdfast/testing").createTestHoldfast;
declare const kit: import("holdfast/testing").TestKit;

// Jobs of the reader.
declare const confirmOrder: AnyJob;
declare const digest: AnyJob;
declare const greeting: AnyJob;
declare const pay: AnyJob;
declare const receipt: AnyJob;
declare const reconcile: AnyJob;
declare const reindex: AnyJob;
declare const report: AnyJob;
declare const statement: AnyJob;
declare const study: AnyJob;

// Functions of the reader.
declare function exchangeRate(): Promise<number>;
declare function fetchPrices(input?: unknown, ctx?: unknown): Promise<number[]>;
declare function findAddresses(): Promise<string[]>;
declare function freshServer(): Promise<import("holdfast").RedisClient>;
declare function load(customer: string, file: string): Promise<void>;
declare function look(market: unknown, ...more: unknown[]): Promise<string[]>;
declare function myLocks(client: unknown): import("holdfast").LockProvider;
declare function register(...parts: unknown[]): void;
declare function run(): Promise<void>;
declare function setup(holdfast: import("holdfast").Holdfast): void;
declare function test(name: string, run: () => Promise<void>): void;
declare function work(lock: import("holdfast").HeldLock): Promise<void>;

// Values of the reader.
declare const accounts: { id: string }[];
declare const child: string;
declare const database: string;
declare const error: Error;
declare const id: string;
declare const market: string;
declare const order: string;
declare const product: string;
declare const request: Request & { id: string; ip: string };
declare const requestId: string;
declare const user: Any;

// Servers, databases and tools of the reader; their own types are their business.
declare const app: Any;
declare const lookInto: (study: Any, options: { signal: AbortSignal }) => Promise<Any>;
declare const assert: typeof import("node:assert");
declare const bank: Any;
declare const client: import("pg").Client;
declare const db: { transaction(work: (tx: Any) => unknown): Any };
declare const Deno: {
  env: { get(name: string): string };
  serve(handler: (request: Request, info: { remoteAddr: { hostname: string } }) => unknown): void;
};
declare const handle: Any;
declare const insert: Any;
declare const orders: Any;
declare const pager: { notify(message: string): void };
declare const server: import("fastify").FastifyInstance;
declare const store: { write(prices: number[], options: { fence: number | null }): Promise<void> };
declare const vi: typeof import("vitest").vi;

declare module "@/holdfast" {
  const holdfast: import("holdfast").Holdfast;
}

// The client of a platform, which is not installed here.
declare module "npm:@supabase/supabase-js@2" {
  export function createClient(url: string, key: string): Any;
}
