// Sends signals: facts that runs wait for. Checks the call and stores the signal, alone or in the caller's transaction. A pass
// after the commit finds the runs that wait for it.

import { ConfigurationError, type Problem, SignalConflictError } from "../shared/errors.js";
import { encodeInput } from "../shared/json.js";
import { requireKey, requireName } from "../shared/names.js";
import { gather } from "../shared/problems.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { NewSignal, SignalResult } from "../store/signals.js";
import type { Store } from "../store/store.js";

/** How long the first value of a signal counts, unless an instance is configured otherwise. */
export const SIGNAL_RETENTION = "7d";

export type SignalOptions = {
  /** Which signal of this name: an id that sender and waiting run know, such as that of an order. */
  readonly key: string;
  /** JSON of at most 256 KiB. @default null */
  readonly value?: unknown;
  /** Your open transaction: the signal is stored in it, and runs are woken once you commit. */
  readonly tx?: object | undefined;
};

/** `repeated`: an equal value was stored before; nothing was changed. */
export type SignalSent = { readonly repeated: boolean };

export type SignalsParams = {
  readonly store: (verb: string) => Promise<Store>;
  readonly keepMs: number;
  /** Called when a signal is stored: sleeping runs may have to be woken. */
  readonly onStored: () => void;
};

export class SignalSender {
  readonly #params: SignalsParams;

  constructor(params: SignalsParams) {
    this.#params = params;
  }

  async send(name: string, options: SignalOptions): Promise<SignalSent> {
    const { keepMs, onStored } = this.#params;
    const signal = readSignal(name, options ?? {}, keepMs);
    const store = await this.#params.store("signal");
    const { tx } = options;
    const result: SignalResult =
      tx === undefined
        ? await store.signals.send(signal)
        : await store.signals.sendWithin({ tx, signal });
    if (result === "conflict") throw new SignalConflictError(name, signal.key, keepMs);
    if (result === "stored") {
      if (tx === undefined) store.wake();
      // On PostgreSQL the commit of the caller's transaction notifies every instance.
      if (tx === undefined || store.engine === "sqlite") onStored();
    }
    return { repeated: result === "repeated" };
  }
}

function readSignal(name: unknown, options: Partial<SignalOptions>, keepMs: number): NewSignal {
  const problems: Problem[] = refuseUnknownMembers(options, ["key", "value", "tx"], "signal()");
  const known = gather(problems, () => requireName(name, "signal(name)"), "");
  const key = gather(problems, () => requireKey(options.key, "signal().key"), "");
  if (problems.length > 0) throw new ConfigurationError(problems);
  const { value = null } = options;
  return { name: known, key, value: encodeInput(value), keepMs };
}
