// Names the scopes of access for credentials of every kind: configured secrets, named keys and the user's own check.

export const SCOPES = ["trigger", "enqueue", "worker", "read", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** A credential with these scopes alone can be limited to jobs and queues; the others look at or change everything. */
export const LIMITABLE_SCOPES: readonly Scope[] = ["trigger", "enqueue", "worker"];

export function isScope(text: unknown): text is Scope {
  return SCOPES.includes(text as Scope);
}
