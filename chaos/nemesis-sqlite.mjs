// Applies faults to a SQLite file, except for killing its writers: a full disk, and a reader that does not end.

/** @typedef {import("./nemesis.mjs").Doer} Doer */

/**
 * @param {{ file: string, members: import("./child-processes.mjs").Member[],
 *   timeline: import("./timeline.mjs").Timeline }} params
 * @returns {(nemesis: import("./nemesis.mjs").Nemesis) => Record<string, Doer>}
 */
export function againstSqlite({ file, members, timeline }) {
  return (nemesis) => ({
    "full-disk": async ({ forMs }) => {
      const able = members.filter(({ isAble }) => isAble);
      if (able.length === 0) return false;
      for (const member of able) member.tell("full");
      const heal = timeline.trouble("disk");
      const later = nemesis.lasting(forMs).then(() => {
        for (const member of members) member.tell("room");
        heal();
      });
      nemesis.pending.push(later);
      return nemesis.count("fullDisks");
    },
    "long-reader": async ({ forMs }) => {
      const { DatabaseSync } = await import("@photostructure/sqlite");
      const reader = new DatabaseSync(file, { readOnly: true });
      try {
        reader.exec("begin");
        reader.prepare("select count(*) from holdfast_run").get();
      } catch {
        reader.close();
        return false;
      }
      nemesis.pending.push(nemesis.lasting(forMs).then(() => reader.close()));
      return nemesis.count("longReaders");
    },
  });
}
