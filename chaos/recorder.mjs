// Writes down every change of every row, in the transaction that made it, together with the call of which
// process made it: what the simulator's checkers need to judge a history of real processes.

import { AsyncLocalStorage } from "node:async_hooks";
import pg from "pg";

/** @typedef {{ who: string, verb: string, params: Record<string, unknown> }} Call */

export const HISTORY = "chaos_history";
const NOT_CALLS = new Set(["onWake", "wake", "close", "open", "engine", "handle", "then"]);
/** What a transaction link says by itself. */
const NOT_CHANGES = /^\s*(begin|commit|rollback|set|savepoint|listen)\b/i;

/** @type {AsyncLocalStorage<Call>} */
const calls = new AsyncLocalStorage();

/**
 * The same store, whose calls are known while they last.
 * @param {any} store
 * @param {string} who
 * @param {string} triggers of the simulator
 */
export function recorded(store, who, triggers) {
  if (store.engine === "postgres") tellServer();
  return new Proxy(store, {
    get(target, name) {
      const member = target[name];
      if (typeof member !== "function") return member;
      if (name === "open" && target.engine === "sqlite")
        return async (/** @type {unknown[]} */ ...args) => {
          const answer = await member.apply(target, args);
          recordHandle(target.handle, triggers);
          return answer;
        };
      if (NOT_CALLS.has(String(name)))
        return (/** @type {unknown[]} */ ...args) => member.apply(target, args);
      return (/** @type {unknown[]} */ ...args) =>
        calls.run({ who, verb: String(name), params: slim(args[0]) }, () =>
          member.apply(target, args),
        );
    },
  });
}

/** The part of a call's parameters that checkers look at. @param {any} params */
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

// ── SQLite: what triggers tell is written down with the commit ─────────────────────────────────────

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

// ── PostgreSQL: a session is told whose call comes next, and triggers write it down ────────────────

let isTelling = false;

function tellServer() {
  if (isTelling) return;
  isTelling = true;
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
