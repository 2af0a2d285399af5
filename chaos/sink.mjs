// Records the effects of handlers in a process of its own. It writes every effect with its run, attempt and fence to a
// file in the order of arrival, and only then responds. An effect with an older fence than the newest of its run gets
// "stale". After a kill and a restart it continues with its file.

import fs from "node:fs";
import net from "node:net";
import readline from "node:readline";

const [file = "", port = "0"] = process.argv.slice(2);
/** Kind, run, fence, attempt, process, number. Any other text comes from a client of another port. */
const EFFECT = /^[a-z:]+ [0-9a-f-]{36} \d+ \d+ \S+ \S+$/;

/** @type {Map<string, number>} */
const fences = new Map();
/** A request whose response was lost arrives again with the same number. @type {Map<string, string>} */
const answered = new Map();
for (const line of fs.readFileSync(file, "utf8").split("\n")) {
  const [what, run = "", fence, , , number = "", answer = ""] = line.split(" ");
  if (!what) continue;
  fences.set(run, Math.max(Number(fence), fences.get(run) ?? 0));
  answered.set(number, answer);
}
const out = fs.openSync(file, "a");

const server = net.createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("error", () => undefined);
  const lines = readline.createInterface({ input: socket });
  lines.on("error", () => undefined);
  lines.on("line", (line) => {
    if (!EFFECT.test(line)) {
      socket.destroy();
      return;
    }
    const [, run = "", fence, , , number = ""] = line.split(" ");
    let answer = answered.get(number);
    if (answer === undefined) {
      const newest = fences.get(run) ?? 0;
      answer = Number(fence) < newest ? "stale" : "ok";
      fences.set(run, Math.max(Number(fence), newest));
      fs.writeSync(out, `${line} ${answer}\n`);
      answered.set(number, answer);
    }
    socket.write(`${number} ${answer}\n`);
  });
});
server.listen({ host: "127.0.0.1", port: Number(port) }, () => fs.writeSync(1, "ready\n"));
process.stdin.on("close", () => process.exit(0)).resume();
