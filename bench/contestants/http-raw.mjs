// The bare route: Hono on Node, which reads the body and does one INSERT through a pool. No secret, no check, no limit.

import { serve } from "@hono/node-server";
import { Hono } from "hono";
import pg from "pg";

/** @param {{ url: string }} params */
export async function open({ url }) {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  pool.on("error", () => {});
  await pool.query(
    "create table if not exists posted (id bigint generated always as identity primary key, input jsonb not null, at timestamptz not null default now())",
  );
  const app = new Hono();
  app.post("/", async (context) => {
    const { input } = await context.req.json();
    const { rows } = await pool.query({
      name: "post",
      text: "insert into posted (input) values ($1) returning id",
      values: [JSON.stringify(input)],
    });
    return context.json({ id: rows[0].id }, 201);
  });
  const server = await new Promise((resolve) => {
    const made = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, () => resolve(made));
  });
  const post = {
    path: "/",
    headers: {},
    body: { input: { number: 1, address: "someone@example.org" } },
  };
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    calls: { enqueue: post, tick: post },
    async close() {
      server.closeAllConnections();
      server.close();
      await pool.end();
    },
  };
}
