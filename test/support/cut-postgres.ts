// A pool of a process that dies at a given statement: before it is sent, or after the server has
// answered and before the process hears of it. Its connections are cut, and it never gets another.

import type { Socket } from "node:net";
import pg from "pg";
import type { Cut } from "./cut.js";

type Client = {
  query(config: unknown, values?: unknown): Promise<unknown>;
  readonly connection: { readonly stream: Socket };
  on(event: "end", listener: () => void): void;
};

export function cutPool(url: string, cut: Cut): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  const clients = new Set<Client>();
  const die = () => {
    for (const client of clients) client.connection.stream.destroy();
    cut.died();
  };
  const connect = pool.connect.bind(pool);
  pool.connect = (async () => {
    if (cut.isDead) throw new Error("There is no such process any more.");
    return connect();
  }) as typeof pool.connect;
  pool.on("error", () => undefined);
  pool.on("connect", (each) => {
    const client = each as unknown as Client;
    clients.add(client);
    client.on("end", () => clients.delete(client));
    if (cut.isDead) client.connection.stream.destroy();
    const query = client.query.bind(client);
    client.query = async (config, values) => {
      if (cut.isDead) throw new Error("There is no such process any more.");
      const fate = cut.next();
      if (fate !== "before") {
        const answer = await query(config, values);
        if (fate === null && !cut.isDead) return answer;
      }
      if (!cut.isDead) die();
      throw new Error("Connection terminated unexpectedly");
    };
  });
  return pool;
}
