// `holdfast runs`: the group of commands that read runs and act on them.

import type { Command } from "commander";
import type { Holdfast } from "../../holdfast.js";
import { MODES, RUN_STATUSES } from "../../runs/rules/run.js";
import type { ChildListOptions, RunListOptions } from "../../runs/runs.js";
import type { RunStepPage } from "../../runs/step-view.js";
import type {
  ItemListOptions,
  RunAttempt,
  RunDetails,
  RunItem,
  RunLogEntry,
} from "../../runs/view.js";
import { systemClock } from "../../shared/adapters/clock.js";
import { delay } from "../../shared/ports.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { UsageError } from "../failure.js";
import { oneOf, readCursor, readRunId, wholeNumber } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import {
  batchPage,
  itemListPage,
  itemTable,
  logLine,
  runListPage,
  runPage,
  stepPage,
} from "../output/runs.js";
import {
  filterOf,
  noSuchRun,
  runReadCommand,
  type WatchFlags,
  withWatchOption,
} from "../read-command.js";
import { type Colours, EXIT, type Shell } from "../shell.js";
import { firstSignal } from "../signals.js";

export function runsCommand(call: Call): Command {
  const command = newCommand({
    name: "runs",
    summary: "List runs, show their logs, cancel and retry them.",
    examples: ["runs list --status failed"],
  });
  for (const add of [
    runsListCommand,
    runsShowCommand,
    runsChildrenCommand,
    runsItemsCommand,
    runsLogsCommand,
    runsCancelCommand,
    runsRetryCommand,
  ]) {
    command.addCommand(add(call));
  }
  return command;
}

// `holdfast runs list`: matching runs, newest first.

type ListFlags = CommonFlags & RunListOptions & WatchFlags;

const LIST_FILTERS = [
  "status",
  "waiting",
  "job",
  "schedule",
  "mode",
  "tag",
  "text",
  "limit",
  "cursor",
] as const;

function runsListCommand(call: Call): Command {
  const command = newCommand({
    name: "list",
    summary: "List runs, newest first.",
    examples: [
      "runs list --status failed --job send-mail",
      "runs list --schedule nightly-report --mode scheduled",
      "runs list --waiting",
      "runs list --limit 20 --watch 5s",
    ],
  })
    .option("--status <status>", RUN_STATUSES.join(", "), oneOf(RUN_STATUSES))
    .option("--waiting", "only suspended runs: they sleep, or wait for a signal or a run")
    .option("--job <name>", "runs of this job")
    .option("--schedule <name>", "runs that this schedule made")
    .option("--mode <mode>", MODES.join(", "), oneOf(MODES))
    .option("--tag <tag>", "runs with this tag")
    .option("--text <text>", "part of the input, a whole key, or an id or its beginning or end")
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <id>", "continue where an earlier list ended", readCursor);
  return act<ListFlags>(withConfigOption(withWatchOption(command)), call, async (flags) => {
    const { shell } = call;
    if (flags.waiting && (flags.status ?? "pending") !== "pending")
      throw new UsageError(
        "--waiting finds suspended runs, which are pending: leave out --status.",
      );
    const filter: RunListOptions = filterOf(flags, LIST_FILTERS);
    return runReadCommand({ flags, shell }, async ({ runs }) => {
      const page = await runs.list(filter);
      return { text: runListPage(page, shell.colours), document: page };
    });
  });
}

// `holdfast runs show`: everything about one run, with its attempts and its slowest items.

type ShowFlags = CommonFlags & WatchFlags;
type Shown = {
  readonly run: RunDetails;
  readonly attempts: readonly RunAttempt[];
  readonly slowest: readonly RunItem[];
  readonly steps: RunStepPage;
};

const SLOWEST_MAX = 5;
const STEPS_SHOWN_MAX = 1_000;

function runsShowCommand(call: Call): Command {
  const command = newCommand({
    name: "show",
    summary: "Show one run with its attempts, its steps and what it waits for.",
    examples: [
      "runs show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "runs show 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --watch 1s",
    ],
  }).argument("<run>", "id of the run, or 6 characters of its beginning or end", readRunId);
  const watched = withWatchOption(command, "show it until it has ended, for example 1s");
  return act<ShowFlags>(withConfigOption(watched), call, async (flags, id = "") => {
    const { shell } = call;
    return runReadCommand({ flags, shell }, async (holdfast) => {
      const found = await readShown(holdfast, id);
      if (!found) return noSuchRun(shell, id);
      return {
        text: pageOf(found, shell.colours),
        document: { ...found.run, attempts: found.attempts, steps: found.steps.steps },
        isLast: found.run.finishedAt !== null,
      };
    });
  });
}

async function readShown(holdfast: Holdfast, id: string): Promise<Shown | null> {
  const run = await holdfast.runs.get(id);
  if (!run) return null;
  const slowest = run.items.total === 0 ? [] : await slowestOf(holdfast, id);
  const steps = await holdfast.runs.steps(id, { limit: STEPS_SHOWN_MAX });
  return { run, attempts: await holdfast.runs.attempts(id), slowest, steps };
}

async function slowestOf(holdfast: Holdfast, id: string): Promise<readonly RunItem[]> {
  return (await holdfast.runs.items(id, { sort: "slowest", limit: SLOWEST_MAX })).items;
}

function pageOf({ run, attempts, slowest, steps }: Shown, colours: Colours): string {
  const parts = [runPage(run, attempts, colours)];
  if (steps.steps.length > 0) parts.push(stepPage(steps, colours));
  if (slowest.length > 0)
    parts.push(`${colours.dim("slowest items")}\n${itemTable(slowest, colours)}`);
  return parts.join("\n\n");
}

// `holdfast runs items`: the items of one run, by key or the slowest first.

type ItemsFlags = CommonFlags &
  WatchFlags &
  Omit<ItemListOptions, "sort"> & { readonly slowest?: boolean };

function runsItemsCommand(call: Call): Command {
  const command = newCommand({
    name: "items",
    summary: "List the items of a run.",
    examples: [
      "runs items 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --outcome failed",
      "runs items 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --slowest --limit 10",
    ],
  })
    .argument("<run>", "id of the run, or 6 characters of its beginning or end", readRunId)
    .option("--outcome <outcome>", "only items with this outcome, for example failed")
    .option("--slowest", "slowest first (default: by key)")
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <cursor>", "continue where an earlier list ended");
  return act<ItemsFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags, id = "") => {
      const { shell } = call;
      const { outcome, slowest, limit, cursor } = flags;
      return runReadCommand({ flags, shell }, async ({ runs }) => {
        const run = await runs.get(id);
        if (!run) return noSuchRun(shell, id);
        const page = await runs.items(id, {
          ...(outcome === undefined ? {} : { outcome }),
          ...(slowest ? { sort: "slowest" } : {}),
          ...(limit === undefined ? {} : { limit }),
          ...(cursor === undefined ? {} : { cursor }),
        });
        return { text: itemListPage(page, shell.colours), document: page };
      });
    },
  );
}

// `holdfast runs children`: the batches of a run with their counts, and the runs that it made.

type ChildrenFlags = CommonFlags & ChildListOptions & WatchFlags & { readonly failed?: boolean };

const CHILDREN_FILTERS = ["status", "batch", "limit", "cursor"] as const;

function runsChildrenCommand(call: Call): Command {
  const command = newCommand({
    name: "children",
    summary: "Show the batches of a run, and the runs that it made.",
    examples: [
      "runs children 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "runs children 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --failed",
    ],
  })
    .argument("<run>", "id of the run that made them", readRunId)
    .option("--failed", "short for --status failed")
    .option("--status <status>", RUN_STATUSES.join(", "), oneOf(RUN_STATUSES))
    .option("--batch <name>", "only those of this batch")
    .option(
      "--limit <count>",
      "at most this many (default: 50)",
      wholeNumber({ min: 1, max: 1_000 }),
    )
    .option("--cursor <id>", "continue where an earlier list ended", readCursor);
  return act<ChildrenFlags>(
    withConfigOption(withWatchOption(command)),
    call,
    async (flags, id = "") => {
      const { shell } = call;
      const filter = {
        ...filterOf(flags, CHILDREN_FILTERS),
        ...(flags.failed === true ? { status: "failed" } : {}),
      } as ChildListOptions;
      return runReadCommand({ flags, shell }, async ({ runs }) => {
        const batches = await runs.batches(id);
        const page = await runs.children(id, filter);
        // Children may outlive their run.
        const isNothing = batches.length === 0 && page.runs.length === 0;
        if (isNothing && !(await runs.get(id))) return noSuchRun(shell, id);
        const parts = batches.length === 0 ? [] : [batchPage(batches, shell.colours), ""];
        const text = [...parts, runListPage(page, shell.colours)].join("\n");
        return { text, document: { batches, ...page } };
      });
    },
  );
}

// `holdfast runs logs`: the stored log lines of a run, and with --follow new ones.

type LogsFlags = CommonFlags & { readonly follow?: boolean };

const POLL_MS = 500;

function runsLogsCommand(call: Call): Command {
  const command = newCommand({
    name: "logs",
    summary: "Show the stored log lines of a run.",
    examples: [
      "runs logs 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "runs logs 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --follow",
    ],
  })
    .argument("<run>", "id of the run, or 6 characters of its beginning or end", readRunId)
    .option("--follow", "continue with new lines until the run has ended");
  return act<LogsFlags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    if (flags.follow && shell.isJson)
      throw new UsageError("--follow and --json exclude each other: --json is one document.");
    return withInstance({ flags, purpose: "existing", shell }, async (holdfast) => {
      if ((await holdfast.runs.get(id)) === null) {
        shell.complain(`There is no run ${id}: it never existed, or it was pruned.`);
        await shell.printJson(null);
        return EXIT.no;
      }
      if (flags.follow) return follow(holdfast, id, shell);
      const lines: RunLogEntry[] = [];
      const cursor = await readOn({
        holdfast,
        id,
        after: null,
        take: (page) => lines.push(...page),
      });
      for (const line of lines) await shell.say(logLine(line, shell.colours));
      if (lines.length === 0) await shell.say("No log lines.");
      await shell.printJson({ lines, cursor });
      return EXIT.done;
    });
  });
}

/** Reads the run before its lines: the last lines are stored before the run ends, so none is missed. */
async function follow(holdfast: Holdfast, id: string, shell: Shell): Promise<number> {
  const stopped = new AbortController();
  void firstSignal().then(() => stopped.abort());
  let cursor: string | null = null;
  while (!stopped.signal.aborted) {
    const run = await holdfast.runs.get(id);
    cursor = await readOn({
      holdfast,
      id,
      after: cursor,
      take: async (page) => {
        for (const line of page) await shell.say(logLine(line, shell.colours));
      },
    });
    if (run === null || run.finishedAt !== null) break;
    await delay(systemClock, POLL_MS, stopped.signal);
  }
  return EXIT.done;
}

/** Reads page by page to the last line; returns its cursor. */
async function readOn(params: {
  readonly holdfast: Holdfast;
  readonly id: string;
  readonly after: string | null;
  readonly take: (lines: readonly RunLogEntry[]) => unknown;
}): Promise<string | null> {
  const { holdfast, id, take } = params;
  for (let { after } = params; ; ) {
    const { lines, cursor } = await holdfast.runs.logs(id, { after });
    if (lines.length === 0) return cursor;
    await take(lines);
    after = cursor;
  }
}

// `holdfast runs cancel`: a pending run at once; a running one is asked to stop.

const CANCEL_TEXTS = {
  cancelled: "cancelled",
  requested: "asked to stop; it is cancelled when it stops, or after 30 s",
  already_terminal: "not cancelled: it had already ended",
  not_found: "not found: it never existed, or it was pruned",
} as const;

function runsCancelCommand(call: Call): Command {
  const command = newCommand({
    name: "cancel",
    summary: "Cancel a run that has not ended.",
    examples: ["runs cancel 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55"],
  }).argument("<run>", "id of the run, or 6 characters of its beginning or end", readRunId);
  return act<CommonFlags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    const result = await withInstance({ flags, purpose: "existing", shell }, (holdfast) =>
      holdfast.runs.cancel(id),
    );
    await shell.say(`Run ${id}: ${CANCEL_TEXTS[result]}.`);
    await shell.printJson({ id, answer: result });
    return result === "cancelled" || result === "requested" ? EXIT.done : EXIT.no;
  });
}

// `holdfast runs retry`: one more attempt for a run that failed or was cancelled, or for the failed runs that it made.

const RETRY_TEXTS = {
  pending: "pending again, with one more attempt",
  not_terminal: "not retried: it has not ended yet",
  completed: "not retried: it completed",
  not_found: "not found: it never existed, or it was pruned",
} as const;

type RetryFlags = CommonFlags & {
  readonly children?: boolean;
  readonly batch?: string;
  readonly fromStep?: string;
};

function runsRetryCommand(call: Call): Command {
  const command = newCommand({
    name: "retry",
    summary: "Give a failed or cancelled run one more attempt.",
    examples: [
      "runs retry 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55",
      "runs retry 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --from-step publish",
      "runs retry 0199c1f2-5a3e-7c41-9d0b-2f6c1c8e7a55 --children",
    ],
  })
    .argument("<run>", "id of the run, or 6 characters of its beginning or end", readRunId)
    .option("--from-step <name>", "do this finished step and all recorded after it again")
    .option("--children", "retry every failed run that it made, not the run itself")
    .option("--batch <name>", "with --children: only those of this batch");
  return act<RetryFlags>(withConfigOption(command), call, async (flags, id = "") => {
    const { shell } = call;
    const { fromStep } = flags;
    if (flags.children === true && fromStep !== undefined)
      throw new UsageError("--from-step is for one run: leave out --children.");
    if (flags.children === true) return retryChildren(call, flags, id);
    if (flags.batch !== undefined)
      throw new UsageError("--batch says which children to retry: add --children.");
    const result = await withInstance({ flags, purpose: "existing", shell }, (holdfast) =>
      holdfast.runs.retry(id, { fromStep }),
    );
    await shell.say(`Run ${id}: ${RETRY_TEXTS[result]}.`);
    await shell.printJson({ id, answer: result });
    return result === "pending" ? EXIT.done : EXIT.no;
  });
}

async function retryChildren({ shell }: Call, flags: RetryFlags, id: string): Promise<number> {
  const only = flags.batch === undefined ? {} : { batch: flags.batch };
  const { retried } = await withInstance({ flags, purpose: "existing", shell }, (holdfast) =>
    holdfast.runs.retryFailed(id, only),
  );
  const retriedText = retried === 1 ? "1 failed child is" : `${retried} failed children are`;
  await shell.say(
    retried === 0 ? `Run ${id}: no failed children.` : `Run ${id}: ${retriedText} pending again.`,
  );
  await shell.printJson({ id, retried });
  return retried > 0 ? EXIT.done : EXIT.no;
}
