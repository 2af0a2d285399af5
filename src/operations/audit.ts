// Gives users `holdfast.audit`: who changed what, from where, when and why.

import { ConfigurationError } from "../shared/errors.js";
import { requireOptions } from "../shared/options.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT, pageOf } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Store } from "../store/store.js";
import { AUDIT_NOUNS, type AuditEntry, type AuditNoun } from "./rules/audit.js";
import { readSince, type SinceOption } from "./statistics.js";

/** One requested change. */
export type AuditRecord = AuditEntry & { readonly id: string; readonly at: Date };

export type AuditListOptions = {
  /** An instant, or a duration such as "24h" before now. */
  readonly since?: SinceOption | undefined;
  readonly noun?: AuditNoun | undefined;
  /**
   * The name of the schedule, run, queue, lock, calendar or instance. Of a run or an alert also six or more characters of
   * the beginning or the end of its id, of an instance also `host:pid`.
   */
  readonly name?: string | undefined;
  readonly who?: string | undefined;
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

export type AuditPage = {
  readonly entries: readonly AuditRecord[];
  readonly nextCursor: string | null;
};

const MEMBERS = ["since", "noun", "name", "who", "limit", "cursor"];

export class Audit {
  readonly #store: () => Promise<Store>;

  constructor(store: () => Promise<Store>) {
    this.#store = store;
  }

  /** Newest first, within the retention of history. */
  async list(options: AuditListOptions = {}): Promise<AuditPage> {
    requireOptions(options, "audit.list()");
    const problems = refuseUnknownMembers(options, MEMBERS, "audit.list()");
    const { limit = PAGE_DEFAULT, cursor, noun, name, who } = options;
    problems.push(...limitProblems(limit));
    if (noun !== undefined && !AUDIT_NOUNS.includes(noun))
      problems.push({ field: "noun", message: `must be one of ${AUDIT_NOUNS.join(", ")}` });
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) problems.push(CURSOR_PROBLEM);
    const since =
      options.since === undefined ? null : readSince(options.since, "audit.list().since", problems);
    if (problems.length > 0) throw new ConfigurationError(problems);
    const records = await (await this.#store()).audit.list({
      limit: limit + 1,
      ...(since === null ? {} : { since }),
      ...(noun === undefined ? {} : { noun }),
      ...(name === undefined ? {} : { name }),
      ...(who === undefined ? {} : { who }),
      ...(cursor === undefined ? {} : { before: Number(cursor) }),
    });
    const { page, last } = pageOf(records, limit);
    return {
      entries: page.map(({ id, at, ...rest }) => ({ ...rest, id: String(id), at: new Date(at) })),
      nextCursor: last ? String(last.id) : null,
    };
  }
}
