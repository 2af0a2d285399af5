// `holdfast.instances`: which instances there are, and making one of them quiet: it claims and fires
// nothing until it is woken, while the others go on. It hears of it by its own poll.

import { InstanceNotFoundError } from "../shared/errors.js";
import { readNote } from "../shared/options.js";
import type { Store } from "../store/store.js";
import {
  type InstanceListOptions,
  type InstancePage,
  listInstances,
  readInstanceList,
} from "./overview.js";
import { type Actor, auditEntry } from "./rules/audit.js";

export type InstancesParams = {
  readonly store: (verb: string) => Promise<Store>;
  readonly actor: Actor;
  /** It may be this one: it should not wait for its next poll. */
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
   * Within its next poll the instance claims and fires nothing new; what it runs goes on. It holds for
   * this very instance: a process that starts anew is another one.
   */
  quiet(id: string, note?: string): Promise<void> {
    return this.#set(id, { isQuiet: true, note: readNote(note, "instances.quiet(note)") });
  }

  /** It claims and fires again, within its next poll. */
  wake(id: string): Promise<void> {
    return this.#set(id, { isQuiet: false, note: null });
  }

  async #set(
    id: string,
    asked: { readonly isQuiet: boolean; readonly note: string | null },
  ): Promise<void> {
    const { actor, store, onChanged } = this.#params;
    const verb = asked.isQuiet ? "quiet" : "wake";
    const facts = { verb, noun: "instance", name: id, note: asked.note } as const;
    const audit = auditEntry(actor, facts);
    const opened = await store(`instances.${verb}`);
    const isKnown = await opened.quietInstance({ id, ...asked, by: actor.who, audit });
    if (!isKnown) throw new InstanceNotFoundError(id);
    onChanged();
  }
}
