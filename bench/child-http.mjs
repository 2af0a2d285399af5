// Runs the child's side of HTTP measurements: one process serves, another one sends requests.

import http from "node:http";

const stamp = () => Number(process.hrtime.bigint()) / 1e6;

/** @param {import("./contestants.mjs").Contestant} contestant */
export function httpActions(contestant) {
  let place;
  return {
    async serveHttp(params) {
      const { open } = await import(`./${contestant.http}`);
      place = await open(params);
      return { url: place.url, calls: place.calls };
    },

    async closeHttp() {
      await place.close();
    },

    /** `callers` loops, each with a connection of its own that stays open. */
    async postFor({ url, call, callers, warmMs, ms }) {
      const { path, headers, body } = call;
      const target = new URL(path, url);
      const text = JSON.stringify(body);
      const agent = new http.Agent({ keepAlive: true, maxSockets: callers });
      const begin = stamp() + warmMs;
      const end = begin + ms;
      let count = 0;
      const post = () =>
        new Promise((resolve, reject) => {
          const request = http.request(target, {
            method: "POST",
            agent,
            headers: {
              ...headers,
              "content-type": "application/json",
              "content-length": Buffer.byteLength(text),
            },
          });
          request.once("error", reject);
          request.once("response", (response) => {
            response.resume();
            response.once("end", () =>
              response.statusCode < 300
                ? resolve()
                : reject(new Error(`${path} answered ${response.statusCode}.`)),
            );
          });
          request.end(text);
        });
      const caller = async () => {
        for (;;) {
          await post();
          const now = stamp();
          if (now >= end) return;
          if (now >= begin) count++;
        }
      };
      await Promise.all(Array.from({ length: callers }, caller));
      agent.destroy();
      return { perSecond: (count / ms) * 1000 };
    },
  };
}
