// Ends a transaction that users' work is in without an effect, and carries the reason out of it. It is
// told apart from whatever the work itself throws, and never leaves the store.

export class RolledBack<Answer> {
  constructor(readonly answer: Answer) {}
}

/** What the user's function threw, wrapped so that nobody takes it for a failure of ours. */
export class ThrownByWork {
  constructor(readonly error: unknown) {}
}
