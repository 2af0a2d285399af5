// Semaphore samples into medians, spreads and ratios, and prints them. It judges goals, but never hides a figure.

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** @returns one entry per scenario, with one row per contestant, in the order of the contestants */
export function summarise(results) {
  return results.map(({ scenario, samples }) => {
    const rows = Object.entries(samples).map(([contestant, all]) => {
      const good = all.filter((sample) => !sample.error);
      const metrics = {};
      for (const name of Object.keys(good[0] ?? {})) {
        const values = good.map((sample) => sample[name]);
        if (!values.every(Number.isFinite)) continue;
        metrics[name] = {
          median: median(values),
          min: Math.min(...values),
          max: Math.max(...values),
        };
      }
      return {
        contestant,
        rounds: good.length,
        metrics,
        errors: all.flatMap((sample) => sample.error ?? []),
      };
    });
    const { name, title, unit, primary, isLowerBetter = false } = scenario;
    return { name, title, unit, primary, isLowerBetter, rows };
  });
}

/** The median of one metric, or undefined when it was not measured. */
export function medianOf(summary, scenario, contestant, metric) {
  const found = summary.find((one) => one.name === scenario);
  const row = found?.rows.find((one) => one.contestant === contestant);
  return row?.metrics[metric ?? found.primary]?.median;
}

const AGAINST = [
  "graphile-worker",
  "pg-boss",
  "raw",
  "plainjob",
  "raw-sqlite",
  "croner",
  "cron-parser",
];

export function renderTables(summary) {
  return summary.map(renderScenario).join("\n\n");
}

function renderScenario({ name, title, unit, primary, rows }) {
  const against = AGAINST.filter((peer) =>
    rows.some((row) => row.contestant === peer && row.metrics[primary]),
  );
  const extras = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))].filter(
    (metric) => metric !== primary,
  );
  const head = [
    "",
    `median ${unit}`,
    "min – max",
    ...against.map((peer) => `× ${peer}`),
    ...extras.map(inWords),
  ];
  const body = rows.map(({ contestant, metrics, errors }) => {
    const main = metrics[primary];
    if (!main) return [contestant, "failed", errors[0]?.split("\n")[0].slice(0, 100) ?? ""];
    const ratios = against.map((peer) => {
      const other = rows.find((row) => row.contestant === peer).metrics[primary].median;
      return (main.median / other).toFixed(2);
    });
    const rest = extras.map((metric) => (metrics[metric] ? figure(metrics[metric].median) : "–"));
    const lost = errors.length > 0 ? ` (${errors.length} failed)` : "";
    return [
      contestant,
      figure(main.median),
      `${figure(main.min)} – ${figure(main.max)}${lost}`,
      ...ratios,
      ...rest,
    ];
  });
  return `${name}: ${title}\n${renderGrid([head, ...body])}`;
}

function renderGrid(lines) {
  const widths = lines[0].map((_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? "").length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]),
        )
        .join("  "),
    )
    .map((line) => `  ${line.trimEnd()}`)
    .join("\n");
}

function figure(value) {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

/** perSecondToLastHandler → per second to last handler */
const inWords = (metric) => metric.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

// ---- goals: ratios of medians of one interleaved run; where a goal is a time, its text says so ---------

const HOLDFAST = "holdfast";
const times = (scenario, peer, atLeast, of = HOLDFAST) => ({
  text: `${scenario}: ${of} ≥ ${atLeast} × ${peer}`,
  atLeast,
  value: (summary) => medianOf(summary, scenario, of) / medianOf(summary, scenario, peer),
});

const GOALS = [
  times("drain", "graphile-worker", 2.5),
  times("drain", "pg-boss", 2.5),
  times("drain", "raw", 0.6),
  times("drain-2", "graphile-worker", 1.5),
  {
    text: "drain-2: holdfast ≥ 0.8 × its own figure with one process",
    atLeast: 0.8,
    value: (summary) =>
      medianOf(summary, "drain-2", HOLDFAST) / medianOf(summary, "drain", HOLDFAST),
  },
  times("locks", "raw", 0.7),
  times("locks-16", "raw", 0.7),
  times("sqlite-locks", "raw-sqlite", 0.7, "holdfast-sqlite"),
  times("items-1", "raw", 0.7),
  times("items-16", "raw", 0.7),
  times("http-enqueue", "raw", 0.6),
  times("enqueue-1", "graphile-worker", 4),
  times("enqueue-16", "graphile-worker", 10),
  times("bulk", "graphile-worker", 2),
  {
    text: "pickup: holdfast's median ≤ graphile-worker's (ratio graphile-worker ÷ holdfast)",
    atLeast: 1,
    value: (summary) =>
      medianOf(summary, "pickup", "graphile-worker") / medianOf(summary, "pickup", HOLDFAST),
  },
  {
    text: "drain-held: holdfast keeps ≥ 0.6 of its rate without the open transaction",
    atLeast: 0.6,
    value: (summary) => medianOf(summary, "drain-held", HOLDFAST, "shareOfFree"),
  },
  ...[HOLDFAST, "holdfast-sqlite"].map((of) => ({
    text: `claim-time: ${of}'s p99 < 100 ms (milliseconds)`,
    atMost: 100,
    value: (summary) => medianOf(summary, "claim-time", of, "p99"),
  })),
  times("sqlite-drain-full", "plainjob", 8, "holdfast-sqlite"),
  times("sqlite-drain-normal", "plainjob", 8, "holdfast-sqlite"),
  {
    text: "next-ticks: holdfast-cron ≥ 1 million a second with a zone (millions, not a ratio)",
    atLeast: 1,
    value: (summary) => medianOf(summary, "next-ticks", "holdfast-cron") / 1e6,
  },
  {
    text: "fire-10k: holdfast's p99 lateness < 1 s (seconds)",
    atMost: 1,
    value: (summary) => medianOf(summary, "fire-10k", HOLDFAST, "p99") / 1000,
  },
  {
    text: "fire-100k: holdfast has committed all within 10 s (seconds)",
    atMost: 10,
    value: (summary) => medianOf(summary, "fire-100k", HOLDFAST, "seconds"),
  },
  {
    text: "fire-100k: holdfast ≥ 0.4 × raw, fires a second",
    atLeast: 0.4,
    value: (summary) =>
      medianOf(summary, "fire-100k", HOLDFAST, "perSecond") /
      medianOf(summary, "fire-100k", "raw", "perSecond"),
  },
  {
    text: "fire-spread: holdfast's p99 lateness < 1 s (seconds)",
    atMost: 1,
    value: (summary) => medianOf(summary, "fire-spread", HOLDFAST, "p99") / 1000,
  },
  {
    // An index of 100,000 entries is a level or two higher than one of 10, twice in a poll.
    text: "idle-schedules: with 100,000 ≤ 2 × what it costs with 10: statements, buffers of a poll",
    atMost: 2,
    value: (summary) => medianOf(summary, "idle-schedules", HOLDFAST),
  },
];

export function judgeGoals(summary) {
  return GOALS.flatMap(({ text, atLeast, atMost, value }) => {
    const reached = value(summary);
    if (!Number.isFinite(reached)) return [];
    const isMet = atMost === undefined ? reached >= atLeast : reached <= atMost;
    return [{ goal: text, reached, atLeast, atMost, isMet }];
  });
}

export function renderGoals(goals) {
  if (goals.length === 0) return "";
  const lines = goals.map(
    ({ goal, reached, isMet }) =>
      `  ${isMet ? "met  " : "SHORT"} ${reached.toFixed(2).padStart(7)}  ${goal}`,
  );
  return `goals\n${lines.join("\n")}`;
}
