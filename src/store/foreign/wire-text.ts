// Statements as every library sends them alike: each parameter travels as text and is cast by the
// statement itself. Left to the libraries, one would write a JSON text as a JSON string once more,
// another an array as JSON, and a third would ask for types that it cannot know.

import { textArray } from "../postgres/array.js";

export type WireStatement = { readonly text: string; readonly values: readonly (string | null)[] };

/** Every parameter of `text` that is not a text has to carry a cast of its own: `$1::uuid[]`. */
export function wireStatement(text: string, values: readonly unknown[]): WireStatement {
  return { text: text.replace(/\$(\d+)/g, "$$$1::text"), values: values.map(wireText) };
}

/** The same for libraries whose placeholders are question marks in the order of their values. */
export function questionMarks({ text, values }: WireStatement): WireStatement {
  const inOrder: (string | null)[] = [];
  // A question mark of ours is an operator: "has this member".
  const marked = text.replaceAll("?", "\\?").replace(/\$(\d+)/g, (_, number: string) => {
    inOrder.push(values[Number(number) - 1] ?? null);
    return "?";
  });
  return { text: marked, values: inOrder };
}

function wireText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return textArray(value.map(wireText));
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
