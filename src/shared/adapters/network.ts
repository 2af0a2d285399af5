// Implements the network port: the system resolves names. The modules for it are loaded with the first call, since
// `node:http` alone takes a third of the time in which a short command of the CLI ends.

import type { Network } from "../ports.js";

export const systemNetwork: Network = {
  async resolve(hostname) {
    const { lookup } = await import("node:dns/promises");
    const found = await lookup(hostname, { all: true, verbatim: true });
    return found.map(({ address }) => address);
  },

  async send(request) {
    const { sendPinned } = await import("./pinned-request.js");
    return sendPinned(request);
  },
};
