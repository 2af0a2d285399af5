// The runs of an instance beside those of the busiest one, and the offset of its clock.

import type { Instance } from "../api/wire.js";
import { Meter } from "../shared/charts.js";
import { durationText, numberText } from "../shared/format.js";

/** From this value on alerts report it by default. */
const SKEW_MS = 5_000;

export function Load(props: { readonly instance: Instance; readonly most: number }) {
  const { held } = props.instance;
  return (
    <span className="grid w-28 gap-1 text-xs text-muted">
      {numberText(held)} running
      <Meter share={held / Math.max(1, props.most)} label="Load" className="bg-running" />
    </span>
  );
}

export function Skew({ instance: { skewMs } }: { readonly instance: Instance }) {
  if (skewMs === null) return null;
  const isFar = Math.abs(skewMs) >= SKEW_MS;
  const words =
    skewMs === 0
      ? "on time"
      : `${durationText(Math.abs(skewMs))} ${skewMs > 0 ? "ahead" : "behind"}`;
  return <span className={isFar ? "text-late-ink" : undefined}>clock {words}</span>;
}
