// Watches PostgreSQL's protocol for committed changes: it tracks the statements of a client, and holds responses back
// until the server reports that it has finished them.

/** A statement that may change data, or that ends a transaction that may have changed data. */
const CHANGES = /\b(insert\s+into|update|delete\s+from|commit)\b/i;
const MESSAGE_HEAD = 5;

export class CommitWatch {
  #isStarted = false;
  /** @type {Buffer} */
  #fromClient = Buffer.alloc(0);
  /** @type {Buffer} */
  #fromServer = Buffer.alloc(0);
  /** Named statements that change data. @type {Map<string, boolean>} */
  #statements = new Map();
  /** One for each answer that is to come: whether it changes something. @type {boolean[]} */
  #asked = [];
  /** Whether the messages until the next sync change data. */
  #isChange = false;
  /** Messages of the answer that is coming in. @type {Buffer[]} */
  #held = [];
  #hasFailed = false;
  /** A stream to a standby has no requests and responses: everything is passed on as it arrives. */
  #isStream = false;

  /** @param {Buffer} piece */
  fromClient(piece) {
    if (this.#isStream) return;
    this.#fromClient = Buffer.concat([this.#fromClient, piece]);
    if (!this.#isStarted) {
      // The first message has no type byte: only its length and a request code.
      if (this.#fromClient.length < 4) return;
      const length = this.#fromClient.readInt32BE(0);
      if (this.#fromClient.length < length) return;
      this.#fromClient = this.#fromClient.subarray(length);
      this.#isStarted = true;
      this.#asked.push(false);
    }
    for (;;) {
      const message = cut(this.#fromClient);
      if (!message) return;
      this.#fromClient = this.#fromClient.subarray(message.length);
      this.#sent(String.fromCharCode(message[0] ?? 0), message.subarray(MESSAGE_HEAD));
    }
  }

  /**
   * @param {Buffer} piece
   * @returns {{ pass: Buffer[], commits: number }} complete messages, and the number of commits in them
   */
  fromServer(piece) {
    if (this.#isStream) return { pass: [piece], commits: 0 };
    this.#fromServer = Buffer.concat([this.#fromServer, piece]);
    /** @type {Buffer[]} */
    const pass = [];
    let commits = 0;
    for (;;) {
      const message = cut(this.#fromServer);
      if (!message) return { pass, commits };
      this.#fromServer = this.#fromServer.subarray(message.length);
      const kind = String.fromCharCode(message[0] ?? 0);
      if (kind === "W") {
        this.#isStream = true;
        return { pass: [...pass, ...this.#held.splice(0), message, this.#fromServer], commits };
      }
      // Asynchronous messages of the server belong to no response.
      if (kind === "A" || this.#asked.length === 0) {
        pass.push(message);
        continue;
      }
      this.#held.push(message);
      if (kind === "E") this.#hasFailed = true;
      if (kind === "Z") {
        const isChange = this.#asked.shift() ?? false;
        const isOver = String.fromCharCode(message[MESSAGE_HEAD] ?? 0) === "I";
        if (isChange && isOver && !this.#hasFailed) commits += 1;
        this.#hasFailed = false;
      }
      // An authentication request waits for a reply, and nothing follows a fatal error.
      if (kind === "Z" || kind === "R" || kind === "E") pass.push(...this.#held.splice(0));
    }
  }

  /** @param {string} kind @param {Buffer} body */
  #sent(kind, body) {
    switch (kind) {
      case "Q":
        this.#asked.push(CHANGES.test(text(body, 0)));
        break;
      case "P": {
        const name = text(body, 0);
        const isChange = CHANGES.test(text(body, Buffer.byteLength(name) + 1));
        this.#statements.set(name, isChange);
        break;
      }
      case "B": {
        const portal = text(body, 0);
        const name = text(body, Buffer.byteLength(portal) + 1);
        if (this.#statements.get(name)) this.#isChange = true;
        break;
      }
      case "S":
        this.#asked.push(this.#isChange);
        this.#isChange = false;
        break;
      default:
        break;
    }
  }
}

/** Returns the first whole message with its header. @param {Buffer} bytes @returns {Buffer | null} */
function cut(bytes) {
  if (bytes.length < MESSAGE_HEAD) return null;
  const length = 1 + bytes.readInt32BE(1);
  return bytes.length < length ? null : bytes.subarray(0, length);
}

/** @param {Buffer} bytes @param {number} from */
function text(bytes, from) {
  return bytes.toString("utf8", from, bytes.indexOf(0, from));
}
