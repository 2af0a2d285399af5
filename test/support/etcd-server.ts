// A throwaway etcd server on ports of its own, where the machine has one.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { until } from "./until.js";

export type EtcdServer = {
  readonly url: string;
  /** Sends one request to the JSON gateway. */
  call(path: string, body: object): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
};

/** Whether there is one to start; says loudly if not. */
export function hasEtcd(): boolean {
  const found = spawnSync("etcd", ["--version"]).status === 0;
  if (!found) console.warn("\nNO ETCD: etcd was not found, the suites that need it are skipped.\n");
  return found;
}

/** With ticks of 10 ms a lease may be as short as one second; by default etcd makes two seconds of it. */
export async function startEtcd(): Promise<EtcdServer> {
  const root = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
  const folder = mkdtempSync(path.join(root, "holdfast-etcd-"));
  const [url, peerUrl] = [await freeUrl(), await freeUrl()];
  const args = [
    ...["--data-dir", folder, "--log-level", "error"],
    ...["--listen-client-urls", url, "--advertise-client-urls", url],
    ...["--listen-peer-urls", peerUrl, "--initial-advertise-peer-urls", peerUrl],
    ...["--initial-cluster", `default=${peerUrl}`],
    ...["--heartbeat-interval", "10", "--election-timeout", "100"],
  ];
  const server: ChildProcess = spawn("etcd", args, { stdio: "ignore" });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const call = async (where: string, body: object) => {
    const response = await fetch(`${url}/v3/${where}`, {
      method: "POST",
      body: JSON.stringify(body),
    });
    return (await response.json()) as Record<string, unknown>;
  };
  const isUp = () =>
    call("kv/range", { key: "YQ==" }).then(
      ({ header }) => header,
      () => false,
    );
  await until("etcd answers", isUp);
  return {
    url,
    call,
    async stop() {
      server.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** An address on which nobody listens. */
export async function freeUrl(): Promise<string> {
  const probe = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => probe.once("listening", resolve));
  const { port } = probe.address() as { readonly port: number };
  await new Promise((resolve) => probe.close(resolve));
  return `http://127.0.0.1:${port}`;
}
