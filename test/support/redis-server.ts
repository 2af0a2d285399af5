// A throwaway Redis server on a socket of its own, where the machine has one.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { until } from "./until.js";

export type RedisServer = {
  readonly socket: string;
  connect(): Redis;
  stop(): Promise<void>;
};

/** Whether there is one to start; says loudly if not. */
export function hasRedis(): boolean {
  const found = spawnSync("redis-server", ["--version"]).status === 0;
  if (!found)
    console.warn("\nNO REDIS: redis-server was not found, the suites that need it are skipped.\n");
  return found;
}

export async function startRedis(): Promise<RedisServer> {
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-redis-"));
  const socket = path.join(folder, "redis.sock");
  const args = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder];
  const server: ChildProcess = spawn("redis-server", args, { stdio: "ignore" });
  const connections: Redis[] = [];
  const connect = () => {
    const connection = new Redis(socket, { retryStrategy: () => 20 });
    connection.on("error", () => undefined);
    connections.push(connection);
    return connection;
  };
  const first = connect();
  await until("Redis answers", async () => (await first.ping()) === "PONG");
  return {
    socket,
    connect,
    async stop() {
      for (const connection of connections) connection.disconnect();
      const ended = new Promise((resolve) => server.once("exit", resolve));
      server.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
