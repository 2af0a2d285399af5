// Commands that only look: their answer as a page or as one document, or with --watch as a page that is
// shown again and again.

import type { Holdfast } from "../holdfast.js";
import { underGivenFlags } from "./flags/refused.js";
import { type CommonFlags, withInstance } from "./instance.js";
import { type Page, refuseWatchedJson, repeat, type WatchFlags } from "./repeat.js";
import { EXIT, type Shell } from "./shell.js";

/** What was found, for people and for programs. */
export type Seen = Page & { readonly document: unknown };

/** Null: there is no such thing, and that was said already. */
export type Look = (holdfast: Holdfast) => Promise<Seen | null>;

export async function showLook(
  params: {
    readonly flags: CommonFlags & WatchFlags;
    readonly shell: Shell;
    readonly needsCode?: boolean;
  },
  look: Look,
): Promise<number> {
  const { flags, shell, needsCode = false } = params;
  const { watch } = flags;
  refuseWatchedJson(shell.isJson, watch);
  return withInstance({ flags, purpose: "look", needsCode, shell }, async (holdfast) => {
    const seen = await underGivenFlags(flags, () => look(holdfast));
    if (seen === null) {
      await shell.answer(null);
      return EXIT.no;
    }
    if (watch !== undefined) {
      let first: Seen | null = seen;
      const show = async () => {
        // What vanishes while it is watched stays as it was seen last.
        const now: Seen = first ?? (await look(holdfast)) ?? { ...seen, isLast: true };
        first = null;
        return now;
      };
      return repeat({ shell, everyMs: watch, show });
    }
    await shell.say(seen.text);
    await shell.answer(seen.document);
    return EXIT.done;
  });
}

/** Those of these flags that were given: what a list is filtered by. */
export function filterOf<Flags, Name extends keyof Flags>(
  flags: Flags,
  names: readonly Name[],
): { [N in Name]?: Exclude<Flags[N], undefined> } {
  const given = names.filter((name) => flags[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, flags[name]])) as never;
}

/** Says that there is no such run, which is an answer and no error. */
export function noSuchRun(shell: Shell, id: string): null {
  shell.complain(`There is no run ${id}: it never existed, or it was pruned.`);
  return null;
}
