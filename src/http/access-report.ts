// Reports sign-ins and refused secrets for the access check: as events, which are logged and counted, and in the audit trail. A
// flood of refusals fills neither: peers that guess have to wait, and the trail takes a bounded number a minute.

import type { Holdfast } from "../holdfast.js";
import { hosting } from "../instance/server-internals.js";
import { type Actor, auditEntry } from "../operations/rules/audit.js";
import type { Scope } from "./wire/schemas.js";

/** Refusals that a process writes to the audit trail; the others are logged and counted. */
const AUDITED_PER_MINUTE = 60;
const MINUTE_MS = 60_000;

/** What was refused. */
export type Refused = "secret" | "callback token";

export class AccessReport {
  readonly #holdfast: Holdfast;
  readonly #nowMs: () => number;
  #minute = 0;
  #audited = 0;

  constructor(holdfast: Holdfast, nowMs: () => number) {
    this.#holdfast = holdfast;
    this.#nowMs = nowMs;
  }

  /** The audit trail has it with the session itself. */
  signedIn(actor: Actor, scopes: ReadonlySet<Scope>): void {
    const { address, requestId, who } = actor;
    this.#emit("access.signed_in", { address, requestId, who, scopes: [...scopes] });
  }

  /** `waitS`: how long the peer has to wait from now on. */
  async refused(actor: Actor, what: Refused, waitS: number): Promise<void> {
    const { address, requestId } = actor;
    this.#emit("access.refused", { address, requestId, what, waitS });
    if (!this.#mayAudit()) return;
    const wait = waitS === 0 ? "" : `; the next one is judged after ${waitS} s`;
    const change = `wrong ${what}${wait}`;
    const entry = auditEntry(actor, { verb: "refuse", noun: "access", name: null, change });
    try {
      await (await this.#holdfast[hosting].store("addAudit")).addAudit(entry);
    } catch {
      // The refusal stands whether or not the database can be reached. It has been logged.
    }
  }

  get #emit() {
    return this.#holdfast[hosting].emit;
  }

  #mayAudit(): boolean {
    const minute = Math.floor(this.#nowMs() / MINUTE_MS);
    if (minute !== this.#minute) this.#audited = 0;
    this.#minute = minute;
    this.#audited += 1;
    return this.#audited <= AUDITED_PER_MINUTE;
  }
}
