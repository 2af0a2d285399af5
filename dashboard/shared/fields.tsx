// Fields of forms: a label above, a hint or a complaint below.

import type { ReactNode } from "react";

export function Field(props: {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <div className="grid content-start gap-1">
      {/* The control is what is put inside. */}
      {/* biome-ignore lint/a11y/noLabelWithoutControl: it is in `children`. */}
      <label className="grid gap-1">
        <span className="text-xs font-medium">{props.label}</span>
        {props.children}
      </label>
      {props.hint === undefined ? null : <span className="text-xs text-muted">{props.hint}</span>}
    </div>
  );
}

export function JsonField(props: {
  readonly label: string;
  readonly hint?: string;
  readonly text: string;
  readonly onChange: (text: string) => void;
  readonly rows?: number;
}) {
  const { label, hint = "JSON", text, onChange, rows = 4 } = props;
  const problem = problemOf(text);
  return (
    <Field label={label} hint={problem === null ? hint : undefined}>
      <textarea
        className="field font-mono text-xs"
        rows={rows}
        spellCheck={false}
        value={text}
        aria-invalid={problem !== null}
        onChange={(event) => onChange(event.target.value)}
      />
      {problem === null ? null : <span className="text-xs text-failed-ink">{problem}</span>}
    </Field>
  );
}

export function problemOf(text: string): string | null {
  if (text.trim() === "") return null;
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `Not JSON yet: ${error instanceof Error ? error.message : String(error)}`;
  }
}
