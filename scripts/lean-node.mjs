// Provides the flags of Node for one process per processor: no extra threads for garbage collection, and a young
// generation so large that few objects are copied twice.

export const LEAN = [
  "--single-threaded-gc",
  "--min-semi-space-size=64",
  "--max-semi-space-size=64",
];
