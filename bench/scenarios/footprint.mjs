// Measures resources other than time: write-ahead log and disk for each run, memory of an idle instance, the time until
// a new process executes its first run, and the duration of a command of the CLI.

import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { withProcesses } from "../processes.mjs";

const RUNS = 20_000;
const MIB = 1024 * 1024;
const stamp = () => Number(process.hrtime.bigint()) / 1e6;
const pathOf = (relative) => fileURLToPath(new URL(relative, import.meta.url));

/** Enqueues and executes RUNS; `sizeOf` is asked before and after, when everything is closed. */
async function growthOf({ contestant, place, sizes, sizeOf }) {
  const before = await sizeOf();
  await withProcesses(contestant, 1, async (worker) => {
    await worker.ask("open", { url: place.url, tuning: "throughput" });
    for (let done = 0; done < RUNS; done += sizes.bulk)
      await worker.ask("seed", { count: Math.min(sizes.bulk, RUNS - done) });
    await worker.ask("drain", { count: RUNS });
    await worker.ask("close");
  });
  return ((await sizeOf()) - before) / RUNS;
}

const wal = {
  name: "wal",
  title:
    "write-ahead log of a run from enqueue to its end, in bulk; graphile-worker keeps no history",
  engines: ["postgres"],
  unit: "bytes/run",
  primary: "bytes",
  isLowerBetter: true,
  async measure({ contestant, places, sizes }) {
    const place = await places.fresh(contestant, {});
    const session = await places.session(place.url);
    const sizeOf = async () => {
      const { rows } = await session.query(
        "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes",
      );
      return rows[0].bytes;
    };
    try {
      return { bytes: await growthOf({ contestant, place, sizes, sizeOf }) };
    } finally {
      await session.end();
      await place.drop();
    }
  },
};

const disk = {
  name: "disk",
  title: "disk that an ended run takes, with its history and indexes",
  engines: ["sqlite"],
  unit: "bytes/run",
  primary: "bytes",
  isLowerBetter: true,
  async measure({ contestant, places, sizes }) {
    const place = await places.fresh(contestant, {});
    const folder = path.dirname(place.url.replace(/^sqlite:/, ""));
    const sizeOf = async () =>
      fs
        .readdirSync(folder)
        .filter((name) => !/-(wal|shm)$/.test(name))
        .reduce((sum, name) => sum + fs.statSync(path.join(folder, name)).size, 0);
    try {
      return { bytes: await growthOf({ contestant, place, sizes, sizeOf }) };
    } finally {
      await place.drop();
    }
  },
};

const isOurs = ({ name }) => name === "holdfast-sqlite";

const firstClaim = {
  name: "first-claim",
  title:
    "from `node` to the first handler, with a run waiting; and the memory of that instance when idle",
  engines: ["sqlite"],
  isFor: isOurs,
  unit: "ms",
  primary: "ms",
  isLowerBetter: true,
  async measure({ contestant, places }) {
    const place = await places.fresh(contestant, { pending: 1 });
    try {
      const begin = stamp();
      const child = spawn(process.execPath, [pathOf("../first-claim-child.mjs"), place.url], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const lines = [];
      let claimedAt = 0;
      child.stdout.setEncoding("utf8").on("data", (text) => {
        claimedAt ||= stamp();
        lines.push(text);
      });
      const code = await new Promise((resolve) => child.once("exit", resolve));
      if (code !== 0) throw new Error(`The instance ended with ${code}.`);
      return { ms: claimedAt - begin, idleMiB: Number(lines.join("").split("\n")[1]) / MIB };
    } finally {
      await place.drop();
    }
  },
};

const cli = {
  name: "cli-next",
  title: "`holdfast next`, from its start to its end; beside a program of Node that does nothing",
  engines: ["sqlite"],
  isFor: isOurs,
  unit: "ms",
  primary: "ms",
  isLowerBetter: true,
  async measure() {
    const timed = async (args) => {
      const begin = stamp();
      const child = spawn(process.execPath, args, { stdio: "ignore" });
      const code = await new Promise((resolve) => child.once("exit", resolve));
      if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}.`);
      return stamp() - begin;
    };
    const next = [pathOf("../../dist/cli/main.js"), "next", "*/5 * * * *"];
    await timed(next);
    return { ms: await timed(next), bareNodeMs: await timed(["-e", "0"]) };
  },
};

export const footprintScenarios = [wal, disk, firstClaim, cli];
