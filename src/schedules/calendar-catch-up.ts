// A schedule keeps copies of the rules of its calendars; here they are brought up to date. The rules
// are read where the change is decided, and whoever changed a calendar or a schedule looks at the
// other one afterwards: so the last of two at the same time sees what the first has done.

import type { Store } from "../store/store.js";
import { type Asker, upsertDecision } from "./edit.js";
import type { ScheduleDefinition } from "./rules/schedule.js";
import type { Desk } from "./updater.js";

export async function catchUpWithCalendars(params: {
  readonly store: Store;
  readonly desk: Desk;
  readonly name: string;
  readonly asker: Asker;
}): Promise<void> {
  const { store, desk, name, asker } = params;
  await desk.change<void>(store, name, async (read) => {
    const { state } = read;
    if (!state || state.deletedAt !== null) return { answer: undefined };
    const definition = JSON.parse(state.definition) as ScheduleDefinition;
    const current = new Map((await store.calendars()).map((each) => [each.name, each.rules]));
    const calendars = definition.when.calendars.map((each) => ({
      ...each,
      rules: current.get(each.name) ?? each.rules,
    }));
    const changed = { ...definition, when: { ...definition.when, calendars } };
    if (JSON.stringify(changed) === state.definition) return { answer: undefined };
    const decision = upsertDecision(
      read,
      { ...state, definition: changed, isForced: false },
      asker,
    );
    return "first" in decision ? decision : { ...decision, answer: undefined };
  });
}
