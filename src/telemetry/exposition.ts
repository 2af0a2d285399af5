// Writes metrics as text: Prometheus's format 0.0.4, or OpenMetrics 1.0 on request. Pure. The usual library is not used, as
// it needs the file system.

export type MetricType = "counter" | "gauge" | "histogram";

/** One kind of metric with all its values. */
export type Family = {
  /** A counter's ends with `_total`. */
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  readonly samples: readonly Sample[];
};

export type Sample = {
  readonly labels: Labels;
  readonly value: number | HistogramValue;
};

/** By name, in the order in which they are written. */
export type Labels = readonly (readonly [name: string, value: string])[];

export type HistogramValue = {
  /** Upper bounds, ascending; larger values count only in `count`. */
  readonly bounds: readonly number[];
  /** The number of values in each bucket. */
  readonly counts: readonly number[];
  readonly count: number;
  readonly sum: number;
};

export const METRICS_FORMATS = ["prometheus", "openmetrics"] as const;
export type MetricsFormat = (typeof METRICS_FORMATS)[number];

export const CONTENT_TYPES: Readonly<Record<MetricsFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Families without a value are left out, to distinguish zero from unknown. */
export function exposition(families: readonly Family[], format: MetricsFormat): string {
  const lines: string[] = [];
  for (const family of families) {
    if (family.samples.length === 0) continue;
    // In OpenMetrics a counter is named without the ending of its only sample.
    const isBare = format === "openmetrics" && family.type === "counter";
    const title = isBare ? family.name.replace(/_total$/, "") : family.name;
    lines.push(`# HELP ${title} ${escapedHelp(family.help, format)}`);
    lines.push(`# TYPE ${title} ${family.type}`);
    for (const sample of family.samples) lines.push(...sampleLines(family.name, sample));
  }
  if (format === "openmetrics") lines.push("# EOF");
  return `${lines.join("\n")}\n`;
}

function sampleLines(name: string, { labels, value }: Sample): string[] {
  if (typeof value === "number") return [`${name}${written(labels)} ${numeral(value)}`];
  let below = 0;
  const buckets = value.bounds.map((bound, at) => {
    below += value.counts[at] ?? 0;
    return bucketLine(name, labels, numeral(bound), below);
  });
  return [
    ...buckets,
    bucketLine(name, labels, "+Inf", value.count),
    `${name}_sum${written(labels)} ${numeral(value.sum)}`,
    `${name}_count${written(labels)} ${value.count}`,
  ];
}

function bucketLine(name: string, labels: Labels, le: string, count: number): string {
  return `${name}_bucket${written([...labels, ["le", le]])} ${count}`;
}

function written(labels: Labels): string {
  if (labels.length === 0) return "";
  return `{${labels.map(([name, value]) => `${name}="${escaped(value)}"`).join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function escapedHelp(help: string, format: MetricsFormat): string {
  const plain = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return format === "openmetrics" ? plain.replaceAll('"', '\\"') : plain;
}

function numeral(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}
