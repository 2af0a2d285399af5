// The same function in Deno, as Supabase runs it, on PostgreSQL. In a clone of this repository:
// deno run -A --unstable-sloppy-imports --import-map=import_map.json deno.ts

import { Holdfast } from "holdfast";
import { migrate, openDatabase } from "../shared/database.js";
import { refreshFunction } from "./edge.js";
import { openingSignals } from "./signals.js";

declare const Deno: {
  env: { get(name: string): string | undefined };
  serve(
    options: { port: number; hostname: string; onListen(address: { port: number }): void },
    handler: (request: Request) => Promise<Response>,
  ): { shutdown(): Promise<void> };
  stdin: { readable: ReadableStream };
};

const database = openDatabase(String(Deno.env.get("DATABASE_URL")));
await migrate(database, new URL("migrations", import.meta.url).pathname);
const schema = Deno.env.get("HOLDFAST_SCHEMA");
const holdfast = new Holdfast({ database: database.handle, ...(schema && { schema }) });
openingSignals(holdfast, String(Deno.env.get("SOURCE_URL")));
// Makes the tables before the first call, which has a few seconds to decide.
await holdfast.schedules.list();
const server = Deno.serve(
  {
    port: Number(Deno.env.get("PORT") ?? 8000),
    hostname: "127.0.0.1",
    onListen: ({ port }) => console.log(`listening ${port}`),
  },
  refreshFunction(holdfast, { secret: String(Deno.env.get("REFRESH_SECRET")) }),
);
for await (const _ of Deno.stdin.readable);
await server.shutdown();
await holdfast.stop();
await database.db.destroy();
