// Turns the part of a JSON Schema that fits a form into fields: the plain members of an object. Everything else stays
// JSON. Pure.

export type FormField = {
  readonly name: string;
  readonly kind: "text" | "number" | "boolean" | "choice";
  readonly choices: readonly (string | number)[];
  readonly isRequired: boolean;
  readonly words: string;
  readonly fallback: unknown;
};

type Schema = Readonly<Record<string, unknown>>;

/** Null: there is no schema, or it describes no object. */
export function fieldsOf(schema: unknown): readonly FormField[] | null {
  const { type, properties, required } = objectOf(schema);
  if (type !== "object" || typeof properties !== "object" || properties === null) return null;
  const needed = Array.isArray(required) ? required : [];
  const fields = Object.entries(properties).flatMap(([name, value]): FormField[] => {
    const member = objectOf(value);
    const choices = Array.isArray(member.enum) ? member.enum.filter(isPlain) : [];
    const kind = choices.length > 0 ? "choice" : kindOf(member.type);
    if (kind === null) return [];
    return [
      {
        name,
        kind,
        choices,
        isRequired: needed.includes(name) && member.default === undefined,
        words: typeof member.description === "string" ? member.description : "",
        fallback: member.default,
      },
    ];
  });
  return fields.length === 0 ? null : fields;
}

/** An initial value with every required member. */
export function sampleOf(schema: unknown): unknown {
  const { type, properties, required, default: fallback, enum: choices } = objectOf(schema);
  if (fallback !== undefined) return fallback;
  if (Array.isArray(choices)) return choices[0];
  if (type === "object") {
    const needed = Array.isArray(required) ? required : [];
    const members = Object.entries(objectOf(properties)).filter(([name]) => needed.includes(name));
    return Object.fromEntries(members.map(([name, member]) => [name, sampleOf(member)]));
  }
  const samples: Readonly<Record<string, unknown>> = {
    string: "",
    number: 0,
    integer: 0,
    boolean: false,
    array: [],
  };
  return samples[String(type)] ?? null;
}

function kindOf(type: unknown): FormField["kind"] | null {
  if (type === "string") return "text";
  if (type === "number" || type === "integer") return "number";
  return type === "boolean" ? "boolean" : null;
}

function isPlain(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

function objectOf(value: unknown): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Schema)
    : {};
}
