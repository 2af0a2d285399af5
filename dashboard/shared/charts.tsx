// Small charts without axes: the figure beside each shows the value, the chart its course.

import { percentText } from "./format.js";

export type Point = { readonly label: string; readonly value: number | null };

/** A line over the points, with gaps for unknown values. From `min` to `max`. */
export function Line(props: {
  readonly points: readonly Point[];
  readonly min?: number;
  readonly max?: number;
  readonly label: string;
  readonly className?: string;
  readonly height?: number;
}) {
  const { points, label, className = "stroke-accent fill-accent", height = 40 } = props;
  const values = points.flatMap(({ value }) => (value === null ? [] : [value]));
  const min = props.min ?? 0;
  const max = Math.max(props.max ?? 0, ...values, min + 1e-9);
  const x = (index: number) => (points.length < 2 ? 0 : (index / (points.length - 1)) * 100);
  const y = (value: number) => 2 + (1 - (value - min) / (max - min)) * 36;
  const known = points.flatMap(({ value }, index) =>
    value === null ? [] : [[x(index), y(value)] as const],
  );
  const path = known
    .map(([px, py], index) => `${index === 0 ? "M" : "L"}${px.toFixed(2)} ${py.toFixed(2)}`)
    .join("");
  const [first] = known;
  const last = known.at(-1);
  const area = first && last ? `${path}L${last[0]} 40L${first[0]} 40Z` : "";
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox="0 0 100 40"
      preserveAspectRatio="none"
      className={`block w-full ${className}`}
      height={height}
    >
      <path d={area} className="stroke-none" fillOpacity="0.12" />
      <path
        d={path}
        className="fill-none"
        strokeWidth="1.6"
        strokeLinejoin="round"
        vectorEffect="non-scaling-stroke"
      />
      {known.length === 1 && first ? (
        <circle cx={first[0]} cy={first[1]} r="1.5" className="stroke-none" />
      ) : null}
    </svg>
  );
}

export type Stack = {
  readonly label: string;
  /** From below; the position sets the colour. */
  readonly parts: readonly number[];
};

const STACK_FILLS = ["fill-ok", "fill-failed", "fill-skipped"];

export function Bars(props: {
  readonly stacks: readonly Stack[];
  readonly label: string;
  readonly fills?: readonly string[];
  readonly height?: number;
}) {
  const { stacks, label, fills = STACK_FILLS, height = 40 } = props;
  const max = Math.max(1, ...stacks.map(({ parts }) => parts.reduce((sum, part) => sum + part, 0)));
  const width = 100 / Math.max(1, stacks.length);
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox="0 0 100 40"
      preserveAspectRatio="none"
      className="block w-full"
      height={height}
    >
      {stacks.map(({ label: name, parts }, index) => {
        let below = 0;
        return (
          <g key={name}>
            <title>{name}</title>
            <rect x={index * width} width={width} y={0} height={40} className="fill-transparent" />
            {parts.map((part, place) => {
              const size = (part / max) * 39;
              below += size;
              return part === 0 ? null : (
                <rect
                  key={fills[place]}
                  x={index * width + width * 0.12}
                  width={width * 0.76}
                  y={40 - below}
                  height={Math.max(size, 0.8)}
                  className={fills[place]}
                />
              );
            })}
          </g>
        );
      })}
      <line x1="0" x2="100" y1="39.8" y2="39.8" className="stroke-line" strokeWidth="0.6" />
    </svg>
  );
}

/** A bar that shows a share of a whole. */
export function Meter({
  share,
  label,
  className = "bg-accent",
}: {
  readonly share: number;
  readonly label: string;
  readonly className?: string;
}) {
  const width = `${Math.min(1, Math.max(0, share)) * 100}%`;
  return (
    // The browser's own cannot be coloured without its private parts.
    // biome-ignore lint/a11y/useSemanticElements: see above.
    <div
      role="meter"
      aria-label={label}
      aria-valuenow={Math.round(share * 100)}
      aria-valuemin={0}
      aria-valuemax={100}
      title={percentText(share)}
      className="h-1.5 overflow-hidden rounded-full bg-sunken"
    >
      <div className={`h-full rounded-full ${className}`} style={{ width }} />
    </div>
  );
}
