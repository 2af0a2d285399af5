// Measures one claim: buffers and index entries per claimed run, in databases of very different sizes. Each contestant
// gives its own claim statement, which runs under EXPLAIN ANALYZE.

import { withProcesses } from "../processes.mjs";
import { buffersOf, explained } from "./explain.mjs";

const DUE = 1000;
const some = (sizes) => sizes.crowd / 10;

const STATES = {
  empty: () => ({ pending: DUE }),
  finishedSome: (sizes) => ({ finished: some(sizes), pending: DUE }),
  finishedMany: (sizes) => ({ finished: sizes.crowd, pending: DUE }),
  pendingSome: (sizes) => ({ pending: some(sizes) }),
  pendingMany: (sizes) => ({ pending: sizes.crowd }),
  futureSome: (sizes) => ({ future: some(sizes), pending: DUE }),
  futureMany: (sizes) => ({ future: sizes.crowd, pending: DUE }),
};

export const claimCost = {
  name: "claim-cost",
  title:
    "what a claim touches; growth = most (a million ÷ a hundred thousand), height = most ÷ nearly empty",
  engines: ["postgres"],
  isFor: ({ name }) => name === "holdfast" || name === "raw",
  isHeavy: true,
  roundsMax: 1,
  unit: "× growth",
  primary: "growth",
  isLowerBetter: true,
  async measure({ contestant, places, sizes }) {
    const costs = {};
    for (const [name, state] of Object.entries(STATES)) {
      const place = await places.fresh(contestant, state(sizes));
      try {
        costs[name] = await costOf({ contestant, places, url: place.url });
      } finally {
        await place.drop();
      }
    }
    const growths = ["finished", "pending", "future"].flatMap((kind) =>
      ["buffers", "entries"].map((what) => costs[`${kind}Many`][what] / costs[`${kind}Some`][what]),
    );
    const heights = Object.values(costs).flatMap((cost) =>
      ["buffers", "entries"].map((what) => cost[what] / costs.empty[what]),
    );
    const columns = Object.entries(costs).flatMap(([name, { buffers, entries }]) => [
      [`${name}Buffers`, buffers],
      [`${name}Entries`, entries],
    ]);
    return {
      growth: Math.max(...growths),
      height: Math.max(...heights),
      ...Object.fromEntries(columns),
    };
  },
};

async function costOf({ contestant, places, url }) {
  const claim = await withProcesses(contestant, 1, async (process) => {
    await process.ask("open", { url, tuning: "throughput" });
    return process.ask("claimStatement");
  });
  const session = await places.session(url);
  try {
    const plan = await explained(session, claim);
    return { buffers: buffersOf(plan) / claim.count, entries: entriesIn(plan) / claim.count };
  } finally {
    await session.end();
  }
}

/** Rows and index entries that scans of tables and indexes looked at, those they threw away included. */
function entriesIn(node) {
  const isScan = node["Relation Name"] !== undefined || node["Index Name"] !== undefined;
  const isRead = isScan && node["Node Type"] !== "ModifyTable";
  const thrownAway = ["Rows Removed by Filter", "Rows Removed by Index Recheck"];
  const rows = thrownAway.reduce((sum, key) => sum + (node[key] ?? 0), node["Actual Rows"]);
  const own = isRead ? rows * node["Actual Loops"] : 0;
  return (node.Plans ?? []).reduce((sum, child) => sum + entriesIn(child), own);
}
