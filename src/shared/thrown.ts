// Reads members of values that somebody threw, which may be anything: null, a string, a Proxy that
// throws at every question. Total; what cannot be read is undefined.

export function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

/** The member, or undefined if there is none or reading it throws. */
export function prop(value: unknown, key: string | number): unknown {
  if (!isObject(value)) return undefined;
  try {
    return (value as Readonly<Record<string | number, unknown>>)[key];
  } catch {
    return undefined;
  }
}

/** The member if it is a string. */
export function textProp(value: unknown, key: string): string | undefined {
  const member = prop(value, key);
  return typeof member === "string" ? member : undefined;
}

/** The member if it is a number. */
export function numberProp(value: unknown, key: string): number | undefined {
  const member = prop(value, key);
  return typeof member === "number" ? member : undefined;
}
