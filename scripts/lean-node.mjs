// How Node runs where every processor has a process of the same kind already: no threads beside it for the
// garbage, and so much room for what is young that little of it is looked at twice.

export const LEAN = [
  "--single-threaded-gc",
  "--min-semi-space-size=64",
  "--max-semi-space-size=64",
];
