// Finds named keys for the access check. A presented secret is looked up by its digest, once for each request, so that a key
// that was revoked or has expired opens nothing from then on, on every instance. Nothing is remembered in between. A text
// that does not look like the secret of a key costs no look into the database, and neither does a request without one.

import type { Holdfast } from "../holdfast.js";
import { hosting } from "../instance/server-internals.js";
import { isKeySecret, keyDigest } from "../operations/keys.js";
import { isScope, SCOPES } from "../operations/rules/scopes.js";
import type { KeyRecord } from "../store/access.js";
import type { Credential } from "./secrets.js";

/** How a session names its key; the name is between the colons. */
const SESSION = /^key:(.+):[0-9a-f]{16}$/;

export class NamedKeys {
  readonly #holdfast: Holdfast;

  constructor(holdfast: Holdfast) {
    this.#holdfast = holdfast;
  }

  /** The key whose secret was presented; null: there is none that counts now. */
  async find(presented: string): Promise<Credential | null> {
    return isKeySecret(presented) ? this.#counting({ digest: keyDigest(presented) }) : null;
  }

  /** The key that a session belongs to; null: it is no key's session, or the key no longer counts. */
  async ofSession(fingerprint: string): Promise<Credential | null> {
    const [, name] = SESSION.exec(fingerprint) ?? [];
    const key = name === undefined ? null : await this.#counting({ name });
    // Not a later key of the same name.
    return key?.fingerprint === fingerprint ? key : null;
  }

  /** Whether somebody could sign in with a key. */
  async areThere(): Promise<boolean> {
    try {
      const keys = await (await this.#store()).accessKeys();
      return keys.some(({ isExpired, jobs, queues }) => !isExpired && !jobs && !queues);
    } catch {
      // A database that does not answer lets nobody in by a key.
      return false;
    }
  }

  async #counting(by: { digest: string } | { name: string }): Promise<Credential | null> {
    const key = await (await this.#store()).accessKey(by);
    if (key === null || key.isExpired) return null;
    if (key.isUseDue) await this.#noteUse(key.name);
    return credentialOf(key);
  }

  /** At most once an hour for each key, whoever writes it. */
  async #noteUse(name: string): Promise<void> {
    try {
      await (await this.#store()).touchKey(name);
    } catch {
      // The call itself matters more than a note about it.
    }
  }

  #store() {
    return this.#holdfast[hosting].store("keys");
  }
}

function credentialOf({ name, session, scopes, jobs, queues }: KeyRecord): Credential {
  const own = new Set(scopes.filter(isScope));
  return {
    name,
    fingerprint: session,
    scopes: own.has("admin") ? new Set(SCOPES) : own,
    ...(jobs === null ? {} : { jobs }),
    ...(queues === null ? {} : { queues }),
  };
}
