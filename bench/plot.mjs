// Curves as a picture: lines over a logarithmic axis, with every measured point and its figure. Plain SVG.

const WIDTH = 760;
const HEIGHT = 380;
const LEFT = 70;
const RIGHT = 200;
const TOP = 76;
const BOTTOM = 56;
const COLOURS = ["#2f6f86", "#c58a3d", "#7a4a8c", "#4a8c5a", "#a33d3d", "#666666"];

/**
 * @typedef {{ name: string, points: [number, number][] }} Line
 * @param {{ title: string, note?: string, xName: string, yName: string, lines: Line[], isLogY?: boolean }} curve
 */
export function plot({ title, note = "", xName, yName, lines, isLogY = false }) {
  const all = lines.flatMap(({ points }) => points);
  const xs = all.map(([x]) => x);
  const ys = all.map(([, y]) => y);
  const x = scale(Math.log10(Math.min(...xs)), Math.log10(Math.max(...xs)), LEFT, WIDTH - RIGHT);
  const most = Math.max(...ys) * 1.1;
  const least = isLogY ? Math.min(...ys.filter((each) => each > 0)) / 1.5 : 0;
  const height = isLogY
    ? scale(Math.log10(least), Math.log10(most), HEIGHT - BOTTOM, TOP)
    : scale(0, most, HEIGHT - BOTTOM, TOP);
  const at = (value) => height(isLogY ? Math.log10(Math.max(value, least)) : value);
  const ticks = [...new Set(xs)].sort((a, b) => a - b);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="#222">`,
    `<title>${title}</title>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    `<text x="20" y="26" font-size="15" font-weight="600">${title}</text>`,
    text(20, 44, note),
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${HEIGHT - BOTTOM}" y2="${HEIGHT - BOTTOM}" stroke="#999"/>`,
    `<line x1="${LEFT}" x2="${LEFT}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" stroke="#999"/>`,
    ...ticks.map((each) => text(x(Math.log10(each)), HEIGHT - BOTTOM + 18, short(each), "middle")),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 40, xName, "middle"),
    text(LEFT, TOP - 4, yName, "middle"),
    text(LEFT - 6, at(isLogY ? least : 0) + 4, isLogY ? short(least) : "0", "end"),
    text(LEFT - 6, at(most) + 14, short(most), "end"),
    ...lines.flatMap(({ name, points }, index) => {
      const colour = COLOURS[index % COLOURS.length];
      const placed = points.map(([px, py]) => [x(Math.log10(px)), at(py)]);
      const [endX, endY] = placed.at(-1);
      return [
        `<polyline points="${placed.map((pair) => pair.map((n) => n.toFixed(1)).join(",")).join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>`,
        ...placed.map(
          ([px, py], point) =>
            `<circle cx="${px.toFixed(1)}" cy="${py.toFixed(1)}" r="3" fill="${colour}"/>${text(px + (point === 0 ? 4 : 0), py - 7, short(points[point][1]), point === 0 ? "start" : "middle", colour)}`,
        ),
        text(endX + 10, endY + 12, name, "start", colour),
      ];
    }),
    "</svg>",
    "",
  ].join("\n");
}

const scale = (from, to, low, high) => (value) =>
  to === from ? (low + high) / 2 : low + ((value - from) / (to - from)) * (high - low);

function text(x, y, said, anchor = "start", colour = "#222") {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${colour}">${said}</text>`;
}

/** 1000000 → 1M, 0.1234 → 0.12 */
function short(value) {
  if (value >= 1e6) return `${trim(value / 1e6)}M`;
  if (value >= 1e4) return `${trim(value / 1e3)}k`;
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return trim(value);
}

const trim = (value) => String(Number(value.toPrecision(value >= 100 ? 3 : 2)));
