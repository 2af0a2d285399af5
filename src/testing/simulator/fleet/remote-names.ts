// What instances, workers elsewhere and checkers all have to know of each other: the name of the target
// and how it is configured, and how workers elsewhere are called.

export const TARGET = "studies";
export const TARGET_OPTIONS = {
  workers: {
    [TARGET]: {
      url: "http://198.18.0.7/work",
      secret: "a secret of the simulation",
      timeout: "20s",
      concurrency: 4,
      allowPrivateNetwork: true,
    },
  },
  publicUrl: "https://holdfast.example",
} as const;

/** How the names of workers elsewhere begin; by this the checkers know them. */
export const ELSEWHERE = "elsewhere-";
