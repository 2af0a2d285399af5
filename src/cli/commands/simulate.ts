// `holdfast simulate`: runs simulated instances in virtual time under faults, from seeds. It shrinks a seed that breaks a promise
// to few faults, and prints its story. Needs no database.

import type { Command } from "commander";
import type { CampaignReport, Counters } from "../../testing/simulator/index.js";
import { act, type Call, newCommand } from "../command.js";
import { UsageError } from "../failure.js";
import { wholeNumber } from "../flags/read.js";
import type { CommonFlags } from "../instance.js";
import { ProgressBar } from "../output/progress-bar.js";
import { EXIT, type Shell } from "../shell.js";

type Flags = CommonFlags & {
  readonly seeds?: number;
  readonly from?: number;
  readonly seed?: number;
};

const SEED_MAX = 999_999_999;
const HOUR_MS = 3_600_000;

export function simulateCommand(call: Call): Command {
  const seed = wholeNumber({ min: 0, max: SEED_MAX });
  const command = newCommand({
    name: "simulate",
    summary: "Simulate instances under faults, and check every promise.",
    examples: [
      "simulate --seeds 100",
      "simulate --seeds 50 --from 1001 --json",
      "simulate --seed 8814",
    ],
  })
    .option("--seeds <count>", "how many seeds", wholeNumber({ min: 1, max: SEED_MAX }))
    .option("--from <seed>", "the first of them (default: 1)", seed)
    .option("--seed <seed>", "one seed, with its story; shrunk to few faults if it fails", seed);
  return act<Flags>(command, call, async (flags) => {
    if ((flags.seed === undefined) === (flags.seeds === undefined))
      throw new UsageError("Give either --seeds with a count, or --seed with one seed.");
    if (flags.seed !== undefined && flags.from !== undefined)
      throw new UsageError("--from goes with --seeds; --seed runs one seed only.");
    return flags.seed === undefined
      ? many(call.shell, { seeds: flags.seeds ?? 1, from: flags.from ?? 1 })
      : one(call.shell, flags.seed);
  });
}

/** Loaded on demand: the other commands start sooner without it. */
function simulator() {
  return import("../../testing/simulator/index.js");
}

async function many(
  shell: Shell,
  { seeds, from }: { readonly seeds: number; readonly from: number },
): Promise<number> {
  const { runCampaign, SOMETIMES } = await simulator();
  const bar = new ProgressBar({ shell });
  const report = await runCampaign({
    seeds,
    from,
    onProgress: ({ violations }, done) => {
      bar.show({ done, total: seeds, text: `${done} of ${seeds} seeds` });
      for (const { promise, text } of violations)
        bar.complain(`Seed ${from + done - 1} breaks ${promise}: ${text}`);
      return undefined;
    },
  });
  bar.end();
  await shell.say(page(report, SOMETIMES));
  const { violations, hash } = report;
  await shell.printJson({ seeds, violations, hash });
  return violations.length === 0 ? EXIT.done : EXIT.no;
}

async function one(shell: Shell, seed: number): Promise<number> {
  const { runSeed, shrinkSeed } = await simulator();
  const report = await runSeed(seed, { hasStory: true });
  const { violations, hash } = report;
  const shrunk = violations.length === 0 ? null : await shrinkSeed(seed);
  const left = shrunk?.faultsLeft.length ?? report.faults;
  const lines = [
    ...(shrunk?.report.story ?? report.story),
    "",
    shrunk
      ? `Seed ${seed} breaks a promise. The story above needs ${left} of its faults and ${shrunk.operationsLeft.length} of its operations.`
      : `Seed ${seed} breaks no promise: ${report.instances} instances, ${report.faults} faults, ${report.operations} operations.`,
    ...violations.map(({ promise, text }) => `${promise}: ${text}`),
    `Event log ${hash}`,
  ];
  await shell.say(lines.join("\n"));
  await shell.printJson({
    seeds: 1,
    violations: violations.map((each) => ({ ...each, seed })),
    hash,
  });
  return violations.length === 0 ? EXIT.done : EXIT.no;
}

function page(report: CampaignReport, labels: Readonly<Record<keyof Counters, string>>): string {
  const { seeds, from, violations, counters, virtualMs, faults, operations, hash } = report;
  const rare = (Object.keys(labels) as (keyof Counters)[]).map(
    (name) => `  ${String(counters[name]).padStart(8)}  ${labels[name]}`,
  );
  return [
    `Seeds ${from} to ${from + seeds - 1}: ${Math.round(virtualMs / HOUR_MS)} virtual hours, ` +
      `${faults} faults, ${operations} operations.`,
    "How often a rare state was reached:",
    ...rare,
    violations.length === 0 ? "No promise was broken." : `${violations.length} violations:`,
    ...violations.map((each) => `  seed ${each.seed}: ${each.promise}: ${each.text}`),
    `Event logs ${hash}`,
  ].join("\n");
}
