// Gives users `holdfast.instances`: lists instances, and makes one quiet, which then claims and fires nothing until it is
// woken. The instance learns of it at its own poll.

import {
  ConfigurationError,
  InstanceAmbiguousError,
  InstanceNotFoundError,
} from "../shared/errors.js";
import { FRAGMENT_LENGTH_MIN } from "../shared/id.js";
import { readNote } from "../shared/options.js";
import { CURSOR_PROBLEM, limitProblems, PAGE_DEFAULT, pageOf } from "../shared/paging.js";
import { refuseUnknownMembers } from "../shared/suggest.js";
import type { Store } from "../store/store.js";
import { type Actor, auditEntry } from "./rules/audit.js";

export type Instance = {
  /** `host:pid:boot-uuid`. */
  readonly id: string;
  readonly app: string | null;
  readonly release: string | null;
  readonly jobs: readonly string[];
  readonly isScheduler: boolean;
  /** Not stopped, and seen lately. */
  readonly isLive: boolean;
  readonly startedAt: Date;
  readonly seenAt: Date;
  readonly retiredAt: Date | null;
  /** How many runs it holds. */
  readonly held: number;
  /** The certain part of its clock's offset from the database's; null before the first measurement. */
  readonly skewMs: number | null;
  /** Since when it is quiet, by whom and why. */
  readonly quietAt: Date | null;
  readonly quietBy: string | null;
  readonly quietNote: string | null;
};

export type InstanceListOptions = {
  /** @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
};

export type InstancePage = {
  readonly instances: readonly Instance[];
  readonly nextCursor: string | null;
};

/** How many instances are searched for a part of an id. */
const INSTANCES_READ = 1_000;
const INSTANCE_CURSOR = /^([lg])(\d{1,9})$/;

export type InstancesParams = {
  readonly store: (verb: string) => Promise<Store>;
  readonly actor: Actor;
  /** Polls now, as the changed instance may be this one. */
  readonly onChanged: () => void;
};

export class Instances {
  readonly #params: InstancesParams;

  constructor(params: InstancesParams) {
    this.#params = params;
  }

  /** Live ones first, then the newest. */
  async list(options: InstanceListOptions = {}): Promise<InstancePage> {
    const filter = readInstanceList(options);
    return listInstances(await this.#params.store("instances.list"), filter);
  }

  /**
   * The id is given whole, or by six characters or more of its beginning or its end, as lists show it. From its next poll on the
   * instance claims and fires nothing new; its present runs go on. It ends with the process: a
   * restarted process is another instance.
   */
  quiet(id: string, note?: string): Promise<void> {
    return this.#set(id, { isQuiet: true, note: readNote(note, "instances.quiet(note)") });
  }

  /** It claims and fires again from its next poll on. */
  wake(id: string): Promise<void> {
    return this.#set(id, { isQuiet: false, note: null });
  }

  async #set(
    id: string,
    change: { readonly isQuiet: boolean; readonly note: string | null },
  ): Promise<void> {
    const { actor, store, onChanged } = this.#params;
    const verb = change.isQuiet ? "quiet" : "wake";
    const opened = await store(`instances.${verb}`);
    const set = (name: string) => {
      const audit = auditEntry(actor, { verb, noun: "instance", name, note: change.note } as const);
      return opened.instances.setQuiet({ id: name, ...change, by: actor.who, audit });
    };
    const isKnown = (await set(id)) || (await set(await wholeId(opened, id)));
    if (!isKnown) throw new InstanceNotFoundError(id);
    onChanged();
  }
}

/** How many ids the error about an ambiguous part names. */
const CANDIDATES_MAX = 10;

/** Finds the one instance with this part in its id; of several, the live one. */
async function wholeId(store: Store, part: string): Promise<string> {
  const all = await store.instances.list({ limit: INSTANCES_READ });
  const own = all.filter(({ id }) => id.startsWith(`${part}:`));
  const found = own.length > 0 ? own : all.filter(({ id }) => hasPart(id, part));
  const live = found.filter(({ isLive }) => isLive);
  const candidates = (live.length > 0 ? live : found).map(({ id }) => id);
  const [only, ...more] = candidates;
  if (only === undefined) throw new InstanceNotFoundError(part);
  if (more.length === 0) return only;
  const isCut = candidates.length > CANDIDATES_MAX;
  throw new InstanceAmbiguousError(part, candidates.slice(0, CANDIDATES_MAX), isCut);
}

/** Lists show `host:pid:boot-uuid` as `host:pid`, or as `host:pid:` and the last characters of the uuid. */
function hasPart(id: string, part: string): boolean {
  if (part.length < FRAGMENT_LENGTH_MIN) return false;
  if (id.startsWith(part) || id.endsWith(part)) return true;
  const [, process, boot = ""] = /^(.*:\d+):([^:]+)$/.exec(id) ?? [];
  return (
    process !== undefined &&
    part.startsWith(`${process}:`) &&
    boot.endsWith(part.slice(process.length + 1))
  );
}

async function listInstances(
  store: Store,
  { limit, after }: ReturnType<typeof readInstanceList>,
): Promise<InstancePage> {
  const records = await store.instances.list({ limit: limit + 1, ...(after ? { after } : {}) });
  const { page, last } = pageOf(records, limit);
  return {
    instances: page.map(({ no: _, startedAt, seenAt, retiredAt, quietAt, ...rest }) => ({
      ...rest,
      quietAt: quietAt === null ? null : new Date(quietAt),
      startedAt: new Date(startedAt),
      seenAt: new Date(seenAt),
      retiredAt: retiredAt === null ? null : new Date(retiredAt),
    })),
    nextCursor: last && `${last.isLive ? "l" : "g"}${last.no}`,
  };
}

function readInstanceList(options: InstanceListOptions) {
  const { limit = PAGE_DEFAULT, cursor } = options;
  const problems = refuseUnknownMembers(options, ["limit", "cursor"], "instances.list()");
  problems.push(...limitProblems(limit));
  const [, life, no] = INSTANCE_CURSOR.exec(cursor ?? "l0") ?? [];
  if (life === undefined) problems.push(CURSOR_PROBLEM);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const after = cursor === undefined ? null : { isLive: life === "l", no: Number(no) };
  return { limit, after };
}
