// Locks as a user takes them: with renewal, signal and log, around a function that does nothing.

import { Holdfast } from "../../dist/index.js";

/** @param {{ url: string }} params */
export async function open({ url }) {
  const holdfast = new Holdfast({ database: url });
  return {
    async lock(name) {
      const { acquired } = await holdfast.lock(name, { lease: "30s" }, () => undefined);
      if (!acquired) throw new Error(`${name} is locked.`);
    },
    close: () => holdfast.stop(),
  };
}
