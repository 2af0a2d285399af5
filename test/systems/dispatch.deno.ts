// Holdfast in Deno, as an edge function has it: a tick sends a run to a worker service, which reports back to the handler.
// Prints how the run ended. Started by dispatch-from-deno.test.ts.

import { Holdfast } from "holdfast";
import { createHandler } from "holdfast/http";

declare const Deno: {
  env: { get(name: string): string | undefined };
  serve(
    options: { port: number; hostname: string; onListen(address: { port: number }): void },
    handler: (
      request: Request,
      info: { remoteAddr: { hostname: string } },
    ) => Response | Promise<Response>,
  ): { shutdown(): Promise<void> };
};

let handler: ReturnType<typeof createHandler> | undefined;
let listening = (_: number) => {};
const started = new Promise<number>((resolve) => {
  listening = resolve;
});
const server = Deno.serve(
  { port: 0, hostname: "127.0.0.1", onListen: ({ port }) => listening(port) },
  (request, { remoteAddr }) =>
    handler?.(request, { remoteAddress: remoteAddr.hostname }) ??
    new Response(null, { status: 503 }),
);
const port = await started;
const url = String(Deno.env.get("WORKER_URL"));
const secret = String(Deno.env.get("WORKER_SECRET"));
const holdfast = new Holdfast({
  database: String(Deno.env.get("DATABASE_URL")),
  publicUrl: `http://127.0.0.1:${port}`,
  workers: { studies: { url, secret, allowPrivateNetwork: true } },
});
handler = createHandler(holdfast, { secrets: { admin: "the-admin-s-own-secret" } });
const study = holdfast.job<{ market: string }>("study", { worker: "studies" });
const { id } = await study.enqueue({ market: "eu" });
const { dispatched } = await holdfast.tick({ limit: 5 });
const { status, result, items } = await holdfast.runs.wait(id, { timeout: "2m" });
console.log(JSON.stringify({ dispatched, status, result, items }));
await holdfast.stop();
await server.shutdown();
