// Records every row change in the transaction that made it, with the process and the call that caused it, so that the
// simulator's checkers can judge a history of real processes.

import { AsyncLocalStorage } from "node:async_hooks";
import pg from "pg";

/** @typedef {{ who: string, verb: string, params: Record<string, unknown> }} Call */

export const HISTORY = "chaos_history";
const NOT_NOUNS = new Set(["connectionsMax", "engine", "handle", "load", "then"]);
/** Statements that change no row. */
const NOT_CHANGES = /^\s*(begin|commit|rollback|set|savepoint|listen)\b/i;

/** @type {AsyncLocalStorage<Call>} */
const calls = new AsyncLocalStorage();

/**
 * Wraps a store so that its current call is known while the call runs.
 * @param {any} store
 * @param {string} who
 * @param {string} triggers of the simulator
 */
export function recorded(store, who, triggers) {
  if (store.engine === "postgres") announceCalls();
  return new Proxy(store, {
    get(target, name) {
      const member = target[name];
      if (name === "open" && target.engine === "sqlite")
        return async (/** @type {unknown[]} */ ...args) => {
          const answer = await member.apply(target, args);
          recordHandle(target.handle, triggers);
          return answer;
        };
      if (typeof member === "function")
        return (/** @type {unknown[]} */ ...args) => member.apply(target, args);
      return NOT_NOUNS.has(String(name)) ? member : recordedNoun(member, String(name), who);
    },
  });
}

/**
 * The verbs of one noun, such as `store.claims`.
 * @param {any} noun
 * @param {string} name
 * @param {string} who
 */
function recordedNoun(noun, name, who) {
  return new Proxy(noun, {
    get(target, verb) {
      const member = target[verb];
      if (typeof member !== "function") return member;
      return (/** @type {unknown[]} */ ...args) =>
        calls.run({ who, verb: `${name}.${String(verb)}`, params: slim(args[0]) }, () =>
          member.apply(target, args),
        );
    },
  });
}

/** The parameters of a call that the checkers use. @param {any} params */
function slim(params) {
  const { holder, limit, wantsSuspect, settlements, id, fence, changes } = params ?? {};
  return {
    ...{ holder, limit, wantsSuspect, id, fence },
    settlements: settlements?.map((/** @type {any} */ each) => ({
      id: each.id,
      fence: each.fence,
      to: each.to,
    })),
    changes: Array.isArray(changes)
      ? changes.map((/** @type {any} */ each) => ({ id: each.id, revision: each.revision }))
      : undefined,
  };
}

// ── SQLite: the notes of the triggers are stored with the commit ────────────────────────────────────

/** @param {any} handle @param {string} triggers */
function recordHandle(handle, triggers) {
  /** @type {unknown[][]} */
  let notes = [];
  handle.function("holdfast_note", { varargs: true }, (/** @type {unknown[]} */ ...values) => {
    notes.push(values);
    return 0;
  });
  handle.exec("pragma temp_store = memory");
  handle.exec(triggers);
  const exec = handle.exec.bind(handle);
  const add = handle.prepare(
    `insert into ${HISTORY} (who, verb, params, at, notes) values (?, ?, ?, ?, ?)`,
  );
  Object.defineProperty(handle, "exec", {
    value: (/** @type {string} */ text) => {
      if (text === "commit" && notes.length > 0) {
        const { who, verb, params } = calls.getStore() ?? { who: "", verb: "?", params: {} };
        add.run(who, verb, JSON.stringify(params), Date.now(), JSON.stringify(notes));
      }
      const answer = exec(text);
      if (text === "commit" || text === "rollback" || text === "begin immediate") notes = [];
      return answer;
    },
  });
}

// ── PostgreSQL: each session learns the next call, and triggers record it ──────────────────────

let isAnnouncing = false;

function announceCalls() {
  if (isAnnouncing) return;
  isAnnouncing = true;
  const query = /** @type {any} */ (pg.Client.prototype.query);
  /** @type {any} */ (pg.Client.prototype).query = function (
    /** @type {any} */ config,
    /** @type {unknown[]} */ ...rest
  ) {
    const call = calls.getStore();
    if (call && typeof config?.text === "string" && !NOT_CHANGES.test(config.text)) {
      const values = [JSON.stringify(call)];
      const text = "select set_config('chaos.call', $1, false)";
      // Sent right before, on the same connection; if it fails, what follows does as well.
      query.call(this, { text, values }).catch(() => undefined);
    }
    return query.call(this, config, ...rest);
  };
}
