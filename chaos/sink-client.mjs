// Sends the effects of handlers to the sink. An effect counts once the sink has confirmed it; until then it is sent again.

import net from "node:net";
import readline from "node:readline";

/** The system may reuse a pid. */
const NAME = `${process.pid}.${Date.now().toString(36)}`;

export class SinkClient {
  #port;
  #count = 0;
  /** @type {Map<string, { line: string, done: (answer: string) => void }>} */
  #open = new Map();
  /** @type {net.Socket | null} */
  #socket = null;

  /** @param {number} port */
  constructor(port) {
    this.#port = port;
  }

  /**
   * @param {{ what: string, run: string, fence: number, attempt: number }} effect
   * @returns {Promise<string>} "ok", or "stale" if the sink has seen a newer fence
   */
  tell({ what, run, fence, attempt }) {
    const number = `${NAME}-${this.#count++}`;
    const line = `${what} ${run} ${fence} ${attempt} ${process.pid} ${number}\n`;
    return new Promise((done) => {
      this.#open.set(number, { line, done });
      if (this.#socket && !this.#socket.connecting) this.#socket.write(line);
      else this.#connect();
    });
  }

  #connect() {
    if (this.#socket) return;
    const socket = net.connect({ host: "127.0.0.1", port: this.#port });
    this.#socket = socket;
    socket.unref();
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.on("connect", () => {
      for (const { line } of this.#open.values()) socket.write(line);
    });
    socket.on("close", () => {
      this.#socket = null;
      if (this.#open.size > 0) setTimeout(() => this.#connect(), 20);
    });
    const lines = readline.createInterface({ input: socket });
    lines.on("error", () => undefined);
    lines.on("line", (text) => {
      const [number = "", answer = ""] = text.split(" ");
      this.#open.get(number)?.done(answer);
      this.#open.delete(number);
    });
  }
}
