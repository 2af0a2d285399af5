// The network of a test: the real one, with real servers. While a request is on its way time stands still,
// as it does while a handler works: a service on this machine takes no time.

import { systemNetwork } from "../shared/adapters/network.js";
import type { Network } from "../shared/ports.js";
import type { VirtualClock } from "./virtual-clock.js";

export function heldNetwork(clock: VirtualClock): Network {
  const held = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const release = clock.hold(() => what);
    try {
      return await work();
    } finally {
      release();
    }
  };
  return {
    resolve: (hostname) => held(`the lookup of ${hostname}`, () => systemNetwork.resolve(hostname)),
    send: (request) =>
      held(`a request to ${request.address}:${request.port}`, () => systemNetwork.send(request)),
  };
}
