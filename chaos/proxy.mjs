// Simulates a bad network between the processes and the PostgreSQL server: it can delay, swallow, hang up, and cut a
// connection after the server has committed and before the client gets the response.

import net from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { CommitWatch } from "./commit-watch.mjs";

/** @typedef {"open" | "mute" | "dead"} LineState mute: answers are swallowed; dead: both ways */

export class Network {
  #targetPort;
  #server = net.createServer({ allowHalfOpen: false }, (socket) => this.#accept(socket));
  /** @type {Set<Line>} */
  #lines = new Set();
  #delayMs = 0;
  #isRefusing = false;
  port = 0;
  /** How many of the next commits to cut, and how many were cut. */
  cutsToCome = 0;
  cutsDone = 0;

  /** @param {number} targetPort */
  constructor(targetPort) {
    this.#targetPort = targetPort;
  }

  /** @param {number} [port] */
  async listen(port = 0) {
    await new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host: "127.0.0.1", port }, () => resolve(undefined));
    });
    this.port = /** @type {net.AddressInfo} */ (this.#server.address()).port;
    return this;
  }

  /** Sends new connections to this port and hangs up the open ones. @param {number} port */
  retarget(port) {
    this.#targetPort = port;
    this.dropAll();
  }

  /** @param {number} ms before each piece is passed on, either way */
  delay(ms) {
    this.#delayMs = ms;
  }

  /** Hangs up new connections at once. @param {boolean} isRefusing */
  refuse(isRefusing) {
    this.#isRefusing = isRefusing;
  }

  dropAll() {
    const count = this.#lines.size;
    for (const line of this.#lines) line.hangUp();
    return count;
  }

  /**
   * Silences some connections, and hangs them up later.
   * @param {{ state: "mute" | "dead", share: number, pick: () => number }} params
   */
  silence({ state, share, pick }) {
    const victims = [...this.#lines].filter((line) => line.state === "open" && pick() < share);
    for (const line of victims) line.state = state;
    return {
      count: victims.length,
      end: () => {
        for (const line of victims) line.hangUp();
      },
    };
  }

  async close() {
    this.#isRefusing = true;
    this.dropAll();
    await new Promise((resolve) => this.#server.close(() => resolve(undefined)));
  }

  #accept(/** @type {net.Socket} */ client) {
    client.on("error", () => undefined);
    if (this.#isRefusing) {
      client.destroy();
      return;
    }
    const server = net.connect({ host: "127.0.0.1", port: this.#targetPort });
    const line = new Line(client, server, {
      delayMs: () => this.#delayMs,
      shallCut: () => {
        if (this.cutsToCome <= 0) return false;
        this.cutsToCome -= 1;
        this.cutsDone += 1;
        return true;
      },
      onGone: () => this.#lines.delete(line),
    });
    this.#lines.add(line);
  }
}

/** One connection of a client, and the proxy's connection to the server for it. */
class Line {
  /** @type {LineState} */
  state = "open";
  #client;
  #server;
  #watch = new CommitWatch();
  #around;
  /** Chunks keep their order, even if they were delayed for different times. */
  #toServer = Promise.resolve();
  #toClient = Promise.resolve();

  /**
   * @param {net.Socket} client
   * @param {net.Socket} server
   * @param {{ delayMs: () => number, shallCut: () => boolean, onGone: () => void }} around
   */
  constructor(client, server, around) {
    this.#client = client;
    this.#server = server;
    this.#around = around;
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.on("close", () => this.hangUp());
    }
    client.on("data", (piece) => {
      this.#watch.fromClient(piece);
      if (this.state !== "dead")
        this.#toServer = this.#after(this.#toServer, () => server.write(piece));
    });
    server.on("data", (piece) => {
      const { pass, commits } = this.#watch.fromServer(piece);
      if (this.state !== "open") return;
      if (commits > 0 && around.shallCut()) {
        this.hangUp();
        return;
      }
      for (const whole of pass)
        this.#toClient = this.#after(this.#toClient, () => client.write(whole));
    });
  }

  hangUp() {
    this.#client.destroy();
    this.#server.destroy();
    this.#around.onGone();
  }

  /** @param {Promise<void>} last @param {() => unknown} send */
  #after(last, send) {
    const dueAt = performance.now() + this.#around.delayMs();
    return last.then(async () => {
      const ms = dueAt - performance.now();
      if (ms > 0) await pause(ms);
      send();
    });
  }
}
