// Fields for the plain members of an input; they write into the JSON below them.

import { Field } from "../shared/fields.js";
import type { FormField } from "./schema.js";

export function SchemaForm(props: {
  readonly fields: readonly FormField[];
  readonly text: string;
  readonly onChange: (text: string) => void;
}) {
  const { fields, text, onChange } = props;
  const input = read(text);
  const set = (name: string, value: unknown) => {
    const next = { ...(input ?? {}) };
    if (value === undefined) delete next[name];
    else next[name] = value;
    onChange(JSON.stringify(next, null, 2));
  };
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      {fields.map((field) => (
        <Field
          key={field.name}
          label={field.isRequired ? `${field.name} *` : field.name}
          hint={field.words || undefined}
        >
          <Control
            field={field}
            value={input?.[field.name]}
            set={(value) => set(field.name, value)}
            isOff={input === null}
          />
        </Field>
      ))}
    </div>
  );
}

function Control(props: {
  readonly field: FormField;
  readonly value: unknown;
  readonly set: (value: unknown) => void;
  readonly isOff: boolean;
}) {
  const { field, value, set, isOff } = props;
  if (field.kind === "boolean")
    return (
      <input
        type="checkbox"
        className="size-4 accent-accent"
        disabled={isOff}
        checked={value === true}
        onChange={(event) => set(event.target.checked)}
      />
    );
  if (field.kind === "choice")
    return (
      <select
        className="field"
        disabled={isOff}
        value={String(value ?? "")}
        onChange={(event) =>
          set(field.choices.find((choice) => String(choice) === event.target.value))
        }
      >
        {field.isRequired ? null : <option value="" />}
        {field.choices.map((choice) => (
          <option key={String(choice)}>{String(choice)}</option>
        ))}
      </select>
    );
  return (
    <input
      className="field"
      disabled={isOff}
      type={field.kind === "number" ? "number" : "text"}
      step="any"
      value={typeof value === "string" || typeof value === "number" ? value : ""}
      placeholder={field.fallback === undefined ? "" : String(field.fallback)}
      onChange={(event) => {
        const typed = event.target.value;
        if (typed === "" && !field.isRequired) set(undefined);
        else set(field.kind === "number" ? Number(typed) : typed);
      }}
    />
  );
}

/** Null: the text is not an object (yet). */
function read(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
