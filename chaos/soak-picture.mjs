// Draws a soak as plain SVG, with one panel for each value that could grow.

const WIDTH = 760;
const PANEL_HEIGHT = 120;
const PANEL_GAP = 52;
const LEFT = 64;
const RIGHT = 150;
const TOP = 74;
const COLOURS = ["#4a7a8c", "#c58a3d", "#7a5c9e", "#a33"];

/** @typedef {{ name: string, points: readonly (readonly [atMs: number, value: number])[] }} Line */

/** @param {Pick<import("./soak.mjs").SoakReport, "seconds" | "runs" | "kills" | "verdict" | "samples" | "memory" | "windows">} report */
export function soakPictureOf({ seconds, runs, kills, verdict, samples, memory, windows }) {
  const mega = (/** @type {number} */ bytes) => bytes / 2 ** 20;
  /** @type {[title: string, lines: Line[]][]} */
  const panels = [
    [
      "heap after a forced collection, MiB",
      Object.entries(memory).map(([name, notes]) => ({
        name: ROLES[name[0] ?? ""] ?? name,
        points: notes.map(({ atMs, heapUsed }) => [atMs, mega(heapUsed)]),
      })),
    ],
    [
      "tables and indexes, MiB",
      [
        line("history", samples, ({ historyBytes }) => mega(historyBytes)),
        line("ticks (kept)", samples, ({ tickBytes }) => mega(tickBytes)),
        line("all others", samples, ({ otherBytes }) => mega(otherBytes)),
      ],
    ],
    ["write-ahead log on the disk, MiB", [line("WAL", samples, ({ walBytes }) => mega(walBytes))]],
    ["dead rows, thousands", [line("dead rows", samples, ({ deadRows }) => deadRows / 1_000)]],
    [
      "p99 in a window, ms",
      [
        line("enqueue → completed", windows, ({ run }) => run.p99),
        line("bare commit", windows, ({ bare }) => bare.p99),
      ],
    ],
    ["one p99 divided by the other", [line("ratio", windows, ({ ratio }) => ratio)]],
  ];
  const height = TOP + panels.length * (PANEL_HEIGHT + PANEL_GAP);
  const title = `A soak of ${Math.round(seconds / 60)} minutes on PostgreSQL: ${runs.toLocaleString("en")} runs, ${kills} SIGKILL`;
  const said = `lost ${verdict.lost} · doubled ${verdict.doubled} · stuck ${verdict.stuck} · all violations ${verdict.violations}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#222">`,
    `<title>${title}</title>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="20" y="28" font-size="15" font-weight="600">${title}</text>`,
    text(20, 50, said),
    ...panels.flatMap(([name, lines], at) =>
      panel({ name, lines, top: TOP + 20 + at * (PANEL_HEIGHT + PANEL_GAP), seconds }),
    ),
    "</svg>",
    "",
  ].join("\n");
}

/** By the first letter of a process's name. @type {Readonly<Record<string, string>>} */
const ROLES = { w: "worker", s: "scheduler", a: "asker" };

/**
 * @template {{ atMs: number }} Item
 * @param {string} name
 * @param {readonly Item[]} items
 * @param {(item: Item) => number} of
 * @returns {Line}
 */
function line(name, items, of) {
  return { name, points: items.map((item) => [item.atMs, of(item)]) };
}

/** @param {{ name: string, lines: Line[], top: number, seconds: number }} params */
function panel({ name, lines, top, seconds }) {
  const most = Math.max(1e-9, ...lines.flatMap(({ points }) => points.map(([, value]) => value)));
  const bottom = top + PANEL_HEIGHT;
  const right = WIDTH - RIGHT;
  const x = (/** @type {number} */ atMs) => LEFT + (atMs / (seconds * 1_000)) * (right - LEFT);
  const y = (/** @type {number} */ value) => bottom - (value / most) * (PANEL_HEIGHT - 8);
  return [
    text(20, top - 8, name),
    text(LEFT - 6, top + 12, most.toPrecision(3), "end"),
    text(LEFT - 6, bottom, "0", "end"),
    `<line x1="${LEFT}" x2="${right}" y1="${bottom}" y2="${bottom}" stroke="#999"/>`,
    text(LEFT, bottom + 15, "0 min"),
    text(right, bottom + 15, `${(seconds / 60).toFixed(0)} min`, "end"),
    ...lines.flatMap(({ name: label, points }, at) => {
      const colour = COLOURS[at % COLOURS.length];
      const path = points.map(([atMs, value]) => `${x(atMs).toFixed(1)},${y(value).toFixed(1)}`);
      return [
        `<polyline points="${path.join(" ")}" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
        `<text x="${right + 10}" y="${top + 14 + at * 16}" fill="${colour}">${label}</text>`,
      ];
    }),
  ];
}

/** @param {number} x @param {number} y @param {string} said @param {string} [anchor] */
function text(x, y, said, anchor = "start") {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${said}</text>`;
}
