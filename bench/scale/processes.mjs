// Throughput against processes: the drain of the benchmark with 1, 2, 4 and 8 workers, in interleaved rounds beside
// graphile-worker at its best. Rates drift with the machine, and beside other work they say little; so the processor time
// that the server and the workers took is counted too (by the kernel, so this is for Linux).

import fs from "node:fs";
import { contestantNamed } from "../contestants.mjs";
import { postgresPlaces } from "../places.mjs";
import { drainScenario } from "../scenarios/drain.mjs";

const COUNTS = [1, 2, 4, 8];
const NAMES = ["holdfast", "graphile-worker"];
const SIZES = { drain: 100_000, warm: 5000 };

const median = (all) => [...all].sort((a, b) => a - b)[all.length >> 1];

/** Milliseconds that the server and all its processes have had of a processor. */
function serverCpuMs(serverPid) {
  const children = fs.readFileSync(`/proc/${serverPid}/task/${serverPid}/children`, "utf8");
  const pids = [serverPid, ...children.trim().split(/\s+/)];
  return pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
}

function cpuMsOf(pid) {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  } catch {
    return 0; // It has ended meanwhile.
  }
}

async function measure({ serverUrl, serverPid, rounds, say }) {
  const places = postgresPlaces(serverUrl);
  const samples = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const workers of COUNTS) {
      let serverMs = 0;
      const scenario = drainScenario({
        engines: ["postgres"],
        workers,
        state: (sizes) => ({ pending: sizes.drain }),
        countOf: (sizes) => sizes.drain,
        waitUntilSettled: true,
        during: async () => {
          const before = serverCpuMs(serverPid);
          return () => (serverMs = serverCpuMs(serverPid) - before);
        },
      });
      const rates = {};
      const cpu = {};
      const turns = round % 2 === 0 ? NAMES : [...NAMES].reverse();
      for (const name of turns) {
        const contestant = contestantNamed(name);
        const drained = await scenario.measure({ contestant, places, sizes: SIZES });
        rates[name] = drained.perSecond;
        cpu[name] = serverMs / (SIZES.drain / 1000) + drained.cpuMsPer1000;
      }
      const { holdfast, "graphile-worker": peer } = rates;
      const cpuRatio = cpu["graphile-worker"] / cpu.holdfast;
      samples.push({ workers, ...rates, ratio: holdfast / peer, cpu, cpuRatio });
      say(JSON.stringify(samples.at(-1)));
    }
  }
  await places.close();
  return summarise(samples);
}

function summarise(samples) {
  return COUNTS.map((workers) => {
    const of = (figure) =>
      samples.filter((each) => each.workers === workers).map((each) => each[figure]);
    return {
      workers,
      ...Object.fromEntries(NAMES.map((name) => [name, Math.round(median(of(name)))])),
      ratio: median(of("ratio")),
      ratios: of("ratio"),
      cpuMsPer1000: Object.fromEntries(
        NAMES.map((name) => [name, median(of("cpu").map((cpu) => cpu[name]))]),
      ),
      cpuRatio: median(of("cpuRatio")),
      cpuRatios: of("cpuRatio"),
    };
  });
}

function draw(figures) {
  const line = (name, of) => ({ name, points: figures.map((row) => [row.workers, of(row)]) });
  return {
    processes: {
      title: "Drain of 100,000 runs that do nothing, against worker processes",
      note: "Two cores for the server and all processes together: more than two processes share them.",
      xName: "worker processes",
      yName: "runs/s",
      lines: NAMES.map((name) => line(name, (row) => row[name])),
    },
    "processes-cpu": {
      title: "Processor time of the same drain, server and workers together",
      note: "What counts where other work goes on beside it, as it did.",
      xName: "worker processes",
      yName: "ms for 1,000",
      lines: NAMES.map((name) => line(name, (row) => row.cpuMsPer1000[name])),
    },
  };
}

export const processesCurve = { measure, draw };
