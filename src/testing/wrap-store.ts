// Wraps every verb of a store for tests and the simulator: they delay calls, lose answers and count statements.
// A verb is named by its noun, such as "claims.exchange"; the few verbs of the store itself have bare names, such as "open".

import type { Store } from "../store/store.js";

type Call = (...args: unknown[]) => unknown;

/** `wrap` gets the name of a verb and the real one, and returns what callers get. */
export function wrapStore(store: Store, wrap: (verb: string, call: Call) => Call): Store {
  return wrapMembers(store, "", wrap);
}

function wrapMembers<T extends object>(
  target: T,
  prefix: string,
  wrap: (verb: string, call: Call) => Call,
): T {
  const known = new Map<PropertyKey, unknown>();
  return new Proxy(target, {
    get(_, name) {
      if (known.has(name)) return known.get(name);
      const member: unknown = Reflect.get(target, name);
      const verb = `${prefix}${String(name)}`;
      const wrapped =
        typeof member === "function"
          ? wrap(verb, (...args) => Reflect.apply(member, target, args))
          : isNoun(member) && prefix === ""
            ? wrapMembers(member, `${verb}.`, wrap)
            : member;
      // Plain values such as `load` change; verbs and nouns do not.
      if (wrapped !== member) known.set(name, wrapped);
      return wrapped;
    },
  });
}

function isNoun(member: unknown): member is object {
  return typeof member === "object" && member !== null && !("statements" in member);
}
