// Every command of the program, called rightly in words and for programs, and called wrongly. A command
// that is missing here fails test/cli/every-command.test.ts: whoever adds one adds its line.
//
// Arguments are words; `<…>` stands for an id that the scene has made. A command that changes something
// names what it changes in `json` a second time, since it is called twice.

import { expect } from "vitest";

export type Exercise = {
  /** Called rightly. */
  readonly args: readonly string[];
  /** The same for `--json`, where the first call has used up what it acts on. */
  readonly json?: readonly string[];
  /** The text for people. */
  readonly says: RegExp;
  /** Members that the document for programs has, among others. */
  readonly answers: object;
  /** @default 0 */
  readonly code?: 0 | 1;
  /** It goes on until told: it is told once it has said this, which it says with --json as well. */
  readonly until?: RegExp;
  /** Called wrongly: exit code 2 and a message that says what would be right. */
  readonly mistake: readonly [args: readonly string[], message: RegExp];
};

const RANGE = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T02:00:00Z", "--detach"];
const NO_REST = ["--no-http", "--no-scheduler"];
const RUN_ID = /must be a run id, for example 0199c1f2-/;
/** Where `move` goes to: a schema for each of its calls. */
const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL ?? "postgres://localhost/none";
const SCHEMA = `every_${process.pid}`;
const ALERT_ID = /must be an alert id, for example 0199c1f2-/;
const NAME = /must be a text of 1 to/;
const WATCH = /"5" has no unit: did you mean "5s" or "5ms"\?/;

export const EXERCISES: Readonly<Record<string, Exercise>> = {
  check: {
    args: ["check"],
    says: /All \d+ checks passed\./,
    answers: { ok: true },
    mistake: [["check", "--timeout", "5"], WATCH],
  },
  repair: {
    args: ["repair", "--apply"],
    says: /Nothing is broken\./,
    answers: { ok: true, applied: true, steps: [], broken: [] },
    mistake: [["repair", "--aply"], /Did you mean --apply\?/],
  },
  recover: {
    args: ["recover"],
    says: /Nothing was changed\. To apply this, add --yes/,
    answers: { applied: false },
    mistake: [["recover", "--yess"], /Did you mean --yes\?/],
  },
  health: {
    args: ["health", "--database", "sqlite:still.db"],
    says: /figure +found +wanted/,
    answers: { figures: expect.any(Array) },
    mistake: [["health", "--success-rate", "often"], /such as 80% or 0\.8/],
  },
  prune: {
    args: ["prune"],
    says: /Nothing is past retention\./,
    answers: { removed: 0 },
    mistake: [["prune", "--jsn"], /Did you mean --json\?/],
  },
  init: {
    args: ["init", "new-1"],
    json: ["init", "new-2"],
    says: /wrote +new-1\/holdfast\.config\.mjs/,
    answers: { written: ["holdfast.config.mjs", ".env.example", "package.json", ".gitignore"] },
    mistake: [["init", "--with-user"], /needs --from-crontab/],
  },
  dev: {
    args: ["dev", "other.config.mjs", "--no-reload", ...NO_REST],
    says: /0 finished, 0 handed back, 0 abandoned/,
    answers: { finished: 0, handedBack: 0, abandoned: 0 },
    until: /instance started/,
    mistake: [["dev", "--concurrency", "many"], /--concurrency.*a whole number from 1 to 10000/],
  },
  start: {
    args: ["start", "other.config.mjs", ...NO_REST],
    says: /0 finished, 0 handed back, 0 abandoned/,
    answers: { finished: 0, handedBack: 0, abandoned: 0 },
    until: /instance started/,
    mistake: [["start", "--heartbeat", "thraed"], /main, thread\. Did you mean thread\?/],
  },
  tick: {
    args: ["tick", "other.config.mjs"],
    says: /0 fired, 0 not fired, 0 executed; /,
    answers: { fired: [], executed: 0 },
    mistake: [["tick", "--budget", "5"], WATCH],
  },
  next: {
    args: ["next", "0 9 * * *", "--from", "2026-03-01T00:00:00Z", "--count", "1"],
    says: /2026-03-01T09:00:00\.000Z/,
    answers: { ticks: ["2026-03-01T09:00:00.000Z"] },
    mistake: [["next", "0 9 * *"], /<cron>: .*"0 9 \* \* \*"|<cron>: .*five|<cron>: .*fields/s],
  },
  migrate: {
    args: ["migrate", "--plan"],
    says: /Nothing to do/,
    answers: { steps: [] },
    mistake: [["migrate", "--paln"], /Did you mean --plan\?/],
  },
  move: {
    args: ["move", "--from", "sqlite:still.db", "--to", POSTGRES_URL, "--schema", SCHEMA, "--yes"],
    json: [
      "move",
      "--from",
      "sqlite:still.db",
      "--to",
      POSTGRES_URL,
      "--schema",
      `${SCHEMA}_too`,
      "--yes",
    ],
    says: /Moved [1-9]\d* rows; both sides count the same in all \d+ tables\./,
    answers: { moved: true, resumedAt: 0 },
    mistake: [["move", "--from", "sqlite:other.db"], /move needs both ends, for example/],
  },
  "schedules list": {
    args: ["schedules", "list"],
    says: /nightly +/,
    answers: { nextCursor: null },
    mistake: [["schedules", "list", "--status", "pausd"], /Did you mean paused\?/],
  },
  "schedules show": {
    args: ["schedules", "show", "nightly"],
    says: /nightly/,
    answers: { name: "nightly", job: "echo" },
    mistake: [["schedules", "show", ""], NAME],
  },
  "schedules create": {
    args: ["schedules", "create", "made-in-words", "--job", "echo", "--every", "1h"],
    json: ["schedules", "create", "made-by-json", "--job", "echo", "--every", "1h"],
    says: /made-in-words/,
    answers: { schedule: { name: "made-by-json" } },
    mistake: [
      ["schedules", "create", "x", "--job", "echo", "--every", "1h", "--cron", "@daily"],
      /cron.*every|every.*cron/s,
    ],
  },
  "schedules ping": {
    args: ["schedules", "ping", "watched"],
    says: /^Checked in .*The next one is expected by/,
    answers: { state: "ok", paused: false, runId: expect.any(String) },
    mistake: [["schedules", "ping", "watched", "--state", "done"], /start, ok, fail/],
  },
  "schedules update": {
    args: ["schedules", "update", "changed", "--every", "2h"],
    json: ["schedules", "update", "changed", "--every", "3h"],
    says: /changed/,
    answers: { schedule: { name: "changed" } },
    mistake: [["schedules", "update", "changed", "--every", "often"], /--every: must be/],
  },
  "schedules delete": {
    args: ["schedules", "delete", "doomed-1"],
    json: ["schedules", "delete", "doomed-2"],
    says: /doomed-1/,
    answers: { name: "doomed-2" },
    mistake: [["schedules", "delete"], /missing required argument 'name'/],
  },
  "schedules pause": {
    args: ["schedules", "pause", "paused-1", "--note", "while we look"],
    json: ["schedules", "pause", "paused-2"],
    says: /paused-1/,
    answers: { name: "paused-2" },
    mistake: [["schedules", "pause", "paused-1", "--nota", "x"], /Did you mean --note\?/],
  },
  "schedules resume": {
    args: ["schedules", "resume", "resting-1"],
    json: ["schedules", "resume", "resting-2"],
    says: /resting-1/,
    answers: { name: "resting-2" },
    mistake: [["schedules", "resume"], /missing required argument 'name'/],
  },
  "schedules trigger": {
    args: ["schedules", "trigger", "triggered-1"],
    json: ["schedules", "trigger", "triggered-2"],
    says: /[0-9a-f]{8}-/,
    answers: { runId: anyId() },
    mistake: [["schedules", "trigger", "triggered-1", "--input", "{"], /not JSON/],
  },
  "schedules test": {
    args: ["schedules", "test", "tested-1"],
    json: ["schedules", "test", "tested-2"],
    says: /[0-9a-f]{8}-/,
    answers: { runId: anyId() },
    mistake: [["schedules", "test", "tested-1", "--inptu", "{}"], /Did you mean --input\?/],
  },
  "schedules preview": {
    args: ["schedules", "preview", "nightly", "--count", "2"],
    says: /02:00:00/,
    answers: { ticks: [{}, {}] },
    mistake: [["schedules", "preview", "nightly", "--count", "0"], /a whole number from 1 to 1000/],
  },
  "schedules explain": {
    args: ["schedules", "explain", "nightly", "2026-01-01T02:00:00Z"],
    says: /nightly|There was|before/,
    answers: { schedule: "nightly" },
    mistake: [["schedules", "explain", "nightly", "yesterday"], /a time with its zone such as/],
  },
  "schedules ticks": {
    args: ["schedules", "ticks", "nightly"],
    says: /No ticks/,
    answers: { ticks: [] },
    mistake: [["schedules", "ticks", "--outcome", "fird"], /Did you mean fired\?/],
  },
  "schedules backfill": {
    args: ["schedules", "backfill", "filled-1", ...RANGE],
    json: ["schedules", "backfill", "filled-2", ...RANGE],
    says: /Backfill [0-9a-f-]{36} started: 0 of 3 ticks/,
    answers: { status: "running", total: 3 },
    mistake: [["schedules", "backfill", "filled-1"], /Give the range: --from/],
  },
  "schedules versions": {
    args: ["schedules", "versions", "nightly"],
    says: /version +kind/,
    answers: { versions: [{ version: 1 }] },
    mistake: [["schedules", "versions"], /missing required argument 'name'/],
  },
  "schedules plan": {
    args: ["schedules", "plan", "other.config.mjs"],
    says: /The code declares no schedules/,
    answers: { changes: [] },
    mistake: [["schedules", "plan", "--frce"], /unknown option '--frce'/],
  },
  "schedules apply": {
    args: ["schedules", "apply", "other.config.mjs"],
    says: /The code declares no schedules/,
    answers: { changes: [] },
    mistake: [["schedules", "apply", "one", "two"], /too many arguments/],
  },
  "calendars list": {
    args: ["calendars", "list"],
    says: /workdays/,
    answers: {},
    mistake: [["calendars", "list", "--watch", "5"], WATCH],
  },
  "calendars show": {
    args: ["calendars", "show", "workdays"],
    says: /only mon/,
    answers: { name: "workdays" },
    mistake: [["calendars", "show"], /missing required argument 'name'/],
  },
  "calendars set": {
    args: ["calendars", "set", "weekend", "--days", "sat,sun"],
    says: /weekend/,
    answers: { name: "weekend" },
    mistake: [["calendars", "set", "weekend", "--days", "someday"], /--days/],
  },
  "calendars delete": {
    args: ["calendars", "delete", "old-1"],
    json: ["calendars", "delete", "old-2"],
    says: /old-1/,
    answers: { name: "old-2" },
    mistake: [["calendars", "delete"], /missing required argument 'name'/],
  },
  pause: {
    args: ["pause", "--all", "--config", "other.config.mjs"],
    says: /Everything is paused/,
    answers: { paused: {} },
    mistake: [["pause"], /--all/],
  },
  resume: {
    args: ["resume", "--all", "--config", "other.config.mjs"],
    says: /Everything is resumed|Nothing to lift/,
    answers: {},
    mistake: [["resume"], /--all/],
  },
  "audit list": {
    args: ["audit", "list", "--noun", "queue"],
    says: /pause queue +stopped-1/,
    answers: { entries: expect.arrayContaining([expect.objectContaining({ name: "stopped-1" })]) },
    mistake: [["audit", "list", "--noun", "queu"], /Did you mean queue\?/],
  },
  "instances list": {
    args: ["instances", "list"],
    says: /<instance> +stopped/,
    answers: { instances: expect.arrayContaining([expect.objectContaining({ isLive: false })]) },
    mistake: [["instances", "list", "--limit", "0"], /a whole number from 1 to 1000/],
  },
  "instances quiet": {
    args: ["instances", "quiet", "<instance>", "--note", "while we look"],
    says: /Instance <instance> becomes quiet with its next poll/,
    answers: { id: "<instance>", quiet: true },
    mistake: [["instances", "quiet"], /missing required argument 'id'/],
  },
  "instances wake": {
    args: ["instances", "wake", "<instance>"],
    says: /Instance <instance> claims and fires again/,
    answers: { id: "<instance>", quiet: false },
    mistake: [["instances", "wake"], /missing required argument 'id'/],
  },
  "keys list": {
    args: ["keys", "list"],
    says: /old-key-|cli-key-|No named keys/,
    answers: { keys: expect.any(Array) },
    mistake: [["keys", "list", "--watch", "5"], WATCH],
  },
  "keys create": {
    args: ["keys", "create", "cli-key-1", "--scope", "read,trigger", "--expires", "90d"],
    json: ["keys", "create", "cli-key-2", "--scope", "worker", "--jobs", "a,b", "--queues", "eu"],
    says: /Key cli-key-1 opens trigger, read and expires .*\n.*\n\n {2}hfk1_[0-9a-f]{64}\n/,
    answers: {
      name: "cli-key-2",
      scopes: ["worker"],
      jobs: ["a", "b"],
      queues: ["eu"],
      secret: expect.stringMatching(/^hfk1_[0-9a-f]{64}$/),
    },
    mistake: [["keys", "create", "x", "--scope", "reed"], /Did you mean read\?/],
  },
  "keys revoke": {
    args: ["keys", "revoke", "old-key-1"],
    json: ["keys", "revoke", "old-key-2"],
    says: /Key old-key-1 is revoked/,
    answers: { name: "old-key-2", revoked: true },
    mistake: [["keys", "revoke"], /missing required argument 'name'/],
  },
  "queues list": {
    args: ["queues", "list"],
    says: /default/,
    answers: {},
    mistake: [["queues", "list", "--watch", "5"], WATCH],
  },
  "queues pause": {
    args: ["queues", "pause", "still-1"],
    json: ["queues", "pause", "still-2"],
    says: /still-1/,
    answers: { name: "still-2" },
    mistake: [["queues", "pause"], /missing required argument 'name'/],
  },
  "queues resume": {
    args: ["queues", "resume", "stopped-1"],
    json: ["queues", "resume", "stopped-2"],
    says: /stopped-1/,
    answers: { name: "stopped-2" },
    mistake: [["queues", "resume"], /missing required argument 'name'/],
  },
  "runs list": {
    args: ["runs", "list", "--job", "fan"],
    says: /<fan>/,
    answers: { runs: [{ job: "fan" }] },
    mistake: [["runs", "list", "--status", "faild"], /Did you mean failed\?/],
  },
  "runs show": {
    args: ["runs", "show", "<fan>"],
    says: /status +completed/,
    answers: { id: "<fan>", status: "completed" },
    mistake: [["runs", "show", "42"], RUN_ID],
  },
  "runs children": {
    args: ["runs", "children", "<fan>"],
    says: /echo/,
    answers: { runs: [{ job: "echo" }] },
    mistake: [["runs", "children", "42"], RUN_ID],
  },
  "runs items": {
    args: ["runs", "items", "<fan>"],
    says: /apples/,
    answers: { items: [{ key: "apples" }] },
    mistake: [["runs", "items", "42"], RUN_ID],
  },
  "runs logs": {
    args: ["runs", "logs", "<fan>"],
    says: /counting/,
    answers: { lines: [{ message: "counting" }] },
    mistake: [["runs", "logs", "<fan>", "--follow", "--json"], /--follow and --json exclude/],
  },
  "runs cancel": {
    args: ["runs", "cancel", "<later-1>"],
    json: ["runs", "cancel", "<later-2>"],
    says: /<later-1>: cancelled\./,
    answers: { id: "<later-2>", answer: "cancelled" },
    mistake: [["runs", "cancel", "42"], RUN_ID],
  },
  "runs retry": {
    args: ["runs", "retry", "<failed-1>"],
    json: ["runs", "retry", "<failed-2>"],
    says: /<failed-1>/,
    answers: { id: "<failed-2>" },
    mistake: [["runs", "retry", "42"], RUN_ID],
  },
  enqueue: {
    args: ["enqueue", "echo", "{}"],
    says: /Run [0-9a-f-]{36} stored\./,
    answers: { id: anyId(), deduplicated: false },
    mistake: [["enqueue", "ecoh", "{}"], /No job is named ecoh\. Did you mean echo\?/],
  },
  signal: {
    args: ["signal", "approved", "--key", "order-1", "--value", '{"by":"ada"}'],
    json: ["signal", "approved", "--key", "order-2", "--value", "true"],
    says: /Signal approved with the key order-1 sent\./,
    answers: { name: "approved", key: "order-2", repeated: false },
    mistake: [["signal", "approved"], /--key says which approved it is, for example/],
  },
  exec: {
    args: ["exec", "greet", "--", "echo", "hello"],
    json: ["exec", "greet", "--", "true"],
    says: /^hello$/m,
    answers: { name: "greet", runId: anyId(), exitCode: 0, endedBy: "itself" },
    mistake: [["exec", "greet", "--wait", "5s", "--", "true"], /--wait waits for a lock/],
  },
  "locks list": {
    args: ["locks", "list", "--database", "sqlite:still.db"],
    says: /No lock/,
    answers: { locks: [] },
    mistake: [["locks", "list", "--limit", "0"], /a whole number from 1 to 1000/],
  },
  "locks stats": {
    args: ["locks", "stats", "--database", "sqlite:still.db"],
    says: /0/,
    answers: { acquired: 0 },
    mistake: [["locks", "stats", "--watch", "5"], WATCH],
  },
  stats: {
    args: ["stats", "--since", "7d"],
    says: /runs? ended since 7d|No run has ended since 7d/,
    answers: { by: "hour" },
    mistake: [["stats", "--by", "dya"], /hour, day\. Did you mean day\?/],
  },
  "locks history": {
    args: ["locks", "history", "--database", "sqlite:still.db"],
    says: /No/,
    answers: { grants: [] },
    mistake: [["locks", "history", "--limit", "many"], /a whole number from 1 to 1000/],
  },
  "locks release": {
    args: ["locks", "release", "import"],
    says: /import/,
    answers: { name: "import" },
    code: 1,
    mistake: [["locks", "release"], /missing required argument 'name'/],
  },
  "alerts list": {
    args: ["alerts", "list", "--state", "all"],
    says: /failureRate.*job "refuse"/,
    answers: { nextCursor: null },
    mistake: [["alerts", "list", "--kind", "slient"], /Did you mean silent\?/],
  },
  "alerts show": {
    args: ["alerts", "show", "<alert>"],
    says: /failureRate/,
    answers: { id: "<alert>", kind: "failureRate" },
    mistake: [["alerts", "show", "42"], ALERT_ID],
  },
  "alerts mute": {
    args: ["alerts", "mute", "<alert>", "--for", "2h"],
    says: /Muted until 20/,
    answers: { id: "<alert>" },
    mistake: [["alerts", "mute", "<alert>", "--for", "5"], WATCH],
  },
  "alerts acknowledge": {
    args: ["alerts", "acknowledge", "<alert>", "--by", "anna"],
    says: /Acknowledged by anna\.|already resolved/,
    answers: { id: "<alert>" },
    mistake: [["alerts", "acknowledge", "42"], ALERT_ID],
  },
  "alerts resolve": {
    args: ["alerts", "resolve", "<alert>", "--by", "ben"],
    says: /Resolved by ben\./,
    answers: { id: "<alert>", resolvedBy: "ben" },
    mistake: [["alerts", "resolve", "42"], ALERT_ID],
  },
  "alerts test": {
    args: ["alerts", "test"],
    says: /function: sent/,
    answers: { ok: true },
    mistake: [["alerts", "test", "--destination", "slack"], /must be one of function/],
  },
  top: {
    args: ["top", "--database", "sqlite:still.db"],
    says: /^holdfast top +sqlite:.*^Next ticks/ms,
    answers: { running: [], instances: [] },
    mistake: [["top", "--watch", "1ms"], /must be at least 200ms/],
  },
  cleanup: {
    args: ["cleanup"],
    says: /Nothing to reclaim/,
    answers: { reclaimed: 0, failed: 0 },
    mistake: [["cleanup", "--timeout", "soon"], /--timeout.*must be a duration such as "30s"/],
  },
  simulate: {
    args: ["simulate", "--seeds", "1"],
    says: /No promise was broken\./,
    answers: { seeds: 1, violations: [] },
    mistake: [["simulate", "--seed", "1", "--seeds", "2"], /either --seeds .* or --seed/],
  },
};

/** A run id, whichever. */
function anyId(): unknown {
  return expect.stringMatching(/^[0-9a-f-]{36}$/);
}
