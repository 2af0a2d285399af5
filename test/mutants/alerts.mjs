// Bugs in alerts: which instance evaluates them, what is found, and how often it is delivered.

/** @type {readonly import("./list.mjs").Mutant[]} */
export const ALERT_MUTANTS = [
  {
    name: "alert-turn-for-everybody-sqlite",
    promise: "of callers at the same time one gets the turn",
    file: "src/store/sqlite/alerts.ts",
    find: "where taken_at <= :now - :everyMs or taken_at > :now + :everyMs",
    replace: "where taken_at <= :now - 0 * :everyMs or taken_at > :now + :everyMs",
    suites: ["conformance: SQLite"],
  },
  {
    name: "alert-delivery-claimed-twice-sqlite",
    promise: "a delivery is sent by one instance at a time",
    file: "src/store/sqlite/alerts.ts",
    find: "attempts = attempts + 1, next_at = :now + :leaseMs",
    replace: "attempts = attempts + 1, next_at = :now + 0 * :leaseMs",
    suites: ["conformance: SQLite"],
  },
  {
    name: "alert-mute-forgotten",
    promise: "a mute holds for the next alert of its kind and subject",
    file: "src/store/alerts/alerts.ts",
    find: "and m.subject = y.subject and m.muted_until > now.at)",
    replace: "and m.subject = y.subject and m.muted_until > now.at and m.resolved_at is null)",
    suites: ["conformance: SQLite"],
  },
  {
    name: "alert-silent-only-when-looked-at",
    promise: "the dead-man's switch fires with every scheduler dead",
    file: "src/alerts/rules/find.ts",
    find: "if (afterMs === null || nextAt === null || lateByMs === null || lateByMs < afterMs) return [];",
    replace:
      "if (!isPolled || afterMs === null || nextAt === null || lateByMs === null || lateByMs < afterMs) return [];",
    suites: ["engine: alerts"],
  },
  {
    name: "alert-never-resolved",
    promise: "an alert is resolved by itself when its condition ends",
    file: "src/alerts/rules/plan.ts",
    find: ".filter((alert) => !foundKeys.has(alertKey(alert)))",
    replace: ".filter((alert) => foundKeys.size < 0 && alert.id === null)",
    suites: ["engine: alerts"],
  },
  {
    name: "alert-pauses-again-without-a-failure",
    promise: "a schedule that was resumed is paused again only by another failure",
    file: "src/alerts/alerting.ts",
    find: "const isNew = tickAt > (pausedTicks[subject.name] ?? Number.NEGATIVE_INFINITY);",
    replace: "const isNew = tickAt > (pausedTicks[subject.type] ?? Number.NEGATIVE_INFINITY);",
    suites: ["engine: alerts"],
  },
  {
    name: "alert-announced-is-executed",
    promise: "an instance that only serves is no worker",
    file: "src/instance/lifecycle.ts",
    find: "this.#works = () => ({ jobs: jobs.names(), queues });",
    replace: "",
    suites: ["engine: alerts"],
  },
  {
    name: "alert-slack-unescaped",
    promise: "a name calls no channel",
    file: "src/alerts/destinations/send.ts",
    find: 'return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");',
    replace: "return text;",
    suites: ["engine: alerts"],
  },
];
