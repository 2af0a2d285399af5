// Turns samples into medians, spreads and ratios, and prints them. It says who leads and which goals are met, and hides no figure.

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

// ---- one row per scenario: ours, the best peer, hand-written SQL, and whether a peer leads -------------

const OURS = ["holdfast", "holdfast-sqlite", "holdfast-cron", "testing-kit"];
const RAW = ["raw", "raw-sqlite"];
/** Its Redis keeps nothing over a crash: it is shown, and does not decide who leads. */
const NOT_DURABLE = ["bullmq"];

/** What a scenario is to reach beside "no peer is ahead": times the best peer, times hand-written SQL, or an own figure. */
const GOALS = {
  "enqueue-1": { peer: 1.5, raw: 0.8 },
  "enqueue-16": { peer: 10 },
  bulk: { peer: 2, raw: 0.8 },
  pickup: { peer: 1, raw: 1 / 1.1 },
  drain: { peer: 2.5, raw: 0.6 },
  "drain-2": { peer: 2 },
  "sqlite-enqueue": { peer: 1 },
  "sqlite-bulk": { peer: 1.5 },
  "sqlite-drain-full": { peer: 8 },
  "sqlite-drain-normal": { peer: 8 },
  locks: { raw: 0.8 },
  "locks-16": { raw: 0.8 },
  "sqlite-locks": { raw: 0.8 },
  "items-1": { raw: 0.8 },
  "items-16": { raw: 0.8 },
  "http-enqueue": { raw: 0.6 },
  "http-tick": { raw: 0.6 },
  "cli-next": { own: { atMost: 150 } },
  "next-ticks": { peer: 1 },
  "next-ticks-first": { peer: 1 },
  "drain-held": { own: { metric: "shareOfFree", atLeast: 0.6 } },
  "schedule-claims": { raw: 1, own: { metric: "p99", atMost: 100 } },
  "sqlite-schedule-claims": { own: { metric: "p99", atMost: 100 } },
  "claim-time": { own: { metric: "p99", atMost: 100 } },
  "fire-10k": { own: { metric: "p99", atMost: 500 } },
  "fire-100k": { own: { metric: "seconds", atMost: 6 } },
  "fire-spread": { own: { metric: "p99", atMost: 1000 } },
  // An index of 100,000 entries is a level or two higher than one of 10, twice in a poll.
  "idle-schedules": { own: { atMost: 2 } },
};

/** One row per scenario and contestant of ours. Ratios are above 1 where we are better, whatever the unit. */
export function compare(summary) {
  return summary.flatMap(({ name, unit, primary, isLowerBetter, rows }) =>
    rows
      .filter(({ contestant, metrics }) => OURS.includes(contestant) && metrics[primary])
      .map(({ contestant, metrics }) => {
        const ours = metrics[primary].median;
        const better = isLowerBetter ? (a, b) => a < b : (a, b) => a > b;
        const ratio = (other) => (isLowerBetter ? other / ours : ours / other);
        const of = (wanted) =>
          rows
            .filter((row) => wanted(row.contestant) && row.metrics[primary])
            .map((row) => ({ name: row.contestant, value: row.metrics[primary].median }))
            .sort((a, b) => (better(a.value, b.value) ? -1 : 1))[0] ?? null;
        const others = [...OURS, ...RAW, ...NOT_DURABLE];
        const peer = of((other) => !others.includes(other));
        const raw = of((other) => RAW.includes(other));
        const { own, ...wanted } = GOALS[name] ?? {};
        const figure = metrics[own?.metric ?? primary]?.median;
        const goals = [
          peer && wanted.peer ? [ratio(peer.value), wanted.peer, `× ${peer.name}`] : null,
          raw && wanted.raw ? [ratio(raw.value), wanted.raw, "× raw"] : null,
          own?.atLeast ? [figure, own.atLeast, own.metric ?? unit] : null,
          own?.atMost ? [-figure, -own.atMost, own.metric ?? unit] : null,
        ].filter((goal) => goal !== null && Number.isFinite(goal[0]));
        return {
          scenario: name,
          contestant,
          unit,
          ours,
          peer: peer && { ...peer, ratio: ratio(peer.value) },
          raw: raw && { ...raw, ratio: ratio(raw.value) },
          isPeerAhead: peer !== null && ratio(peer.value) < 1,
          goals: goals.map(([reached, goal, of]) => ({
            of,
            reached: Math.abs(reached),
            goal: Math.abs(goal),
            isMet: reached >= goal,
          })),
        };
      }),
  );
}

/** The table of bench/RESULTS.md, and a last line per row: ahead or behind, and by how much. */
export function renderComparison(rows) {
  if (rows.length === 0) return "";
  const cell = (other) => (other ? `${figure(other.value)} (${other.name})` : "–");
  const times = (other) => (other ? `${other.ratio.toFixed(2)}` : "–");
  const goalText = ({ of, goal, reached, isMet }) =>
    `${goal.toFixed(2)} ${of}: ${isMet ? "met" : `short, ${reached.toFixed(2)}`}`;
  const table = rows.map((row) =>
    [
      "",
      `${row.scenario}, ${row.unit}`,
      figure(row.ours),
      cell(row.peer),
      times(row.peer),
      cell(row.raw),
      times(row.raw),
      row.goals.map(goalText).join("; ") || "–",
      `\`npm run bench -- --only ${row.scenario}\``,
      "",
    ]
      .join(" | ")
      .trim(),
  );
  const head =
    "| row | ours | best peer | × peer | hand-written SQL | × raw | goal | command |\n|---|--:|--:|--:|--:|--:|---|---|";
  const verdicts = rows.map(({ scenario, peer, isPeerAhead }) => {
    if (!peer) return `  no peer  ${scenario}`;
    const by = `${Math.abs(peer.ratio * 100 - 100).toFixed(0)} %`;
    return `  ${isPeerAhead ? "BEHIND " : "ahead  "}  ${scenario}: ${by} ${isPeerAhead ? "behind" : "ahead of"} ${peer.name}`;
  });
  return `${head}\n${table.join("\n")}\n\n${verdicts.join("\n")}`;
}
