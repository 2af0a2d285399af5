// Declares the results of the parser, as far as tests read them; it brings no types.

declare module "parse-prometheus-text-format" {
  export type ParsedFamily = {
    readonly name: string;
    readonly help: string;
    readonly type: "COUNTER" | "GAUGE" | "HISTOGRAM" | "UNTYPED";
    readonly metrics: readonly {
      readonly labels?: Readonly<Record<string, string>>;
      readonly value?: string;
      readonly buckets?: Readonly<Record<string, string>>;
      readonly count?: string;
      readonly sum?: string;
    }[];
  };
  export default function parsePrometheusTextFormat(text: string): readonly ParsedFamily[];
}
