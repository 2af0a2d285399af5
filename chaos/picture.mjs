// Draws a campaign as plain SVG: the faults, the states that they met, and the duration of takeovers.

import { TAKEOVER_MAX_MS, totalsOf, unbrokenMsOf } from "./totals.mjs";

const WIDTH = 760;
const BAR_HEIGHT = 18;
const LABEL_WIDTH = 210;
const MARGIN = 20;
const BUCKETS = 32;
const PLOT_HEIGHT = 140;

/** @param {import("./totals.mjs").Campaign} campaign */
export function pictureOf(campaign) {
  const totals = totalsOf(campaign);
  const { verdict, counts } = totals;
  const bars = Object.entries(totals.faults).filter(
    ([name, count]) => name !== "passed" && count > 0,
  );
  const top = MARGIN + 70;
  const plotTop = top + bars.length * BAR_HEIGHT + 50;
  const height = plotTop + PLOT_HEIGHT + 50;
  const title = `${totals.database}${totals.isPooled ? " behind PgBouncer" : ""}: ${number(counts.runs)} runs, ${number(counts.ticks)} ticks, ${totals.rounds} rounds of chaos`;
  const said = `lost ${verdict.lost} · doubled effects ${verdict.doubledEffects} · doubled ticks ${verdict.doubledTicks} · stuck ${verdict.stuck} · all violations ${verdict.violations}`;
  const most = Math.max(1, ...bars.map(([, count]) => count));
  const drawn = bars.map(([name, count], at) => {
    const y = top + at * BAR_HEIGHT;
    // Rare faults would be invisible beside frequent ones.
    const length = (Math.log10(1 + count) / Math.log10(1 + most)) * (WIDTH - LABEL_WIDTH - 90);
    return [
      text(LABEL_WIDTH - 8, y + 13, words(name), "end"),
      `<rect x="${LABEL_WIDTH}" y="${y + 2}" width="${length.toFixed(1)}" height="${BAR_HEIGHT - 5}" fill="#4a7a8c"/>`,
      text(LABEL_WIDTH + length + 6, y + 13, number(count)),
    ].join("");
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" fill="#222">`,
    `<title>${title}</title>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="${MARGIN}" y="${MARGIN + 12}" font-size="15" font-weight="600">${title}</text>`,
    text(MARGIN, MARGIN + 34, said),
    text(MARGIN, MARGIN + 58, "faults (logarithmic)"),
    ...drawn,
    ...takeoverPlot(campaign, plotTop),
    "</svg>",
    "",
  ].join("\n");
}

/** @param {import("./totals.mjs").Campaign} campaign @param {number} top */
function takeoverPlot({ rounds }, top) {
  const values = rounds.flatMap(({ takeovers }) => takeovers.map(unbrokenMsOf));
  const longest = TAKEOVER_MAX_MS * 1.1;
  const width = WIDTH - 2 * MARGIN;
  const buckets = new Array(BUCKETS).fill(0);
  for (const value of values)
    buckets[Math.min(BUCKETS - 1, Math.floor((value / longest) * BUCKETS))] += 1;
  const most = Math.max(1, ...buckets);
  const limit = MARGIN + (TAKEOVER_MAX_MS / longest) * width;
  const bottom = top + PLOT_HEIGHT;
  return [
    text(
      MARGIN,
      top - 12,
      `${number(values.length)} takeovers after a death, by how long they took`,
    ),
    ...buckets.map((count, at) => {
      const barHeight = (count / most) * (PLOT_HEIGHT - 10);
      const x = MARGIN + (at / BUCKETS) * width;
      return `<rect x="${x.toFixed(1)}" y="${(bottom - barHeight).toFixed(1)}" width="${(width / BUCKETS - 2).toFixed(1)}" height="${barHeight.toFixed(1)}" fill="#c58a3d"/>`;
    }),
    `<line x1="${MARGIN}" x2="${WIDTH - MARGIN}" y1="${bottom}" y2="${bottom}" stroke="#999"/>`,
    `<line x1="${limit.toFixed(1)}" x2="${limit.toFixed(1)}" y1="${top}" y2="${bottom}" stroke="#a33" stroke-dasharray="4 3"/>`,
    text(limit - 6, top + 12, `lease + poll + 1 s = ${TAKEOVER_MAX_MS} ms`, "end"),
    text(MARGIN, bottom + 18, "0 ms"),
    text(WIDTH - MARGIN, bottom + 18, `${Math.round(longest)} ms and more`, "end"),
  ];
}

/** @param {number} x @param {number} y @param {string} said @param {string} [anchor] */
function text(x, y, said, anchor = "start") {
  return `<text x="${x.toFixed(1)}" y="${y}" text-anchor="${anchor}">${said}</text>`;
}

/** @param {number | undefined} value */
function number(value) {
  return (value ?? 0).toLocaleString("en");
}

/** killsInWrite → kills in write. @param {string} name */
function words(name) {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
