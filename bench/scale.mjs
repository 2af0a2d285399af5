// How Holdfast grows: one curve per command, as figures in bench/curves and as a picture in docs/images. Work is
// counted (buffers, statements, pages), not timed, wherever it can be: a count is the same on a busy machine.
//
//   node bench/scale.mjs CURVE [--max 10000000] [--rounds 3]      after `npm run build`
//   CURVE: processes, backlog, history, schedules, idle, or all

import fs from "node:fs";
import os from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { plot } from "./plot.mjs";
import { claimCurve } from "./scale/claims.mjs";
import { idleCurve } from "./scale/idle.mjs";
import { processesCurve } from "./scale/processes.mjs";
import { schedulesCurve } from "./scale/schedules.mjs";
import { startPostgresServer } from "./servers.mjs";

const CURVES = {
  processes: processesCurve,
  backlog: claimCurve("backlog"),
  history: claimCurve("history"),
  schedules: schedulesCurve,
  idle: idleCurve,
};
const folderOf = (name) => fileURLToPath(new URL(name, import.meta.url));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    max: { type: "string", default: "10000000" },
    rounds: { type: "string", default: "3" },
  },
});
const wanted = positionals[0] === "all" ? Object.keys(CURVES) : positionals;
if (wanted.length === 0 || wanted.some((name) => !(name in CURVES))) {
  console.error(
    `usage: node bench/scale.mjs CURVE [--max N] [--rounds N]; curves: ${Object.keys(CURVES).join(", ")}, all`,
  );
  process.exit(2);
}

const server = await startPostgresServer({
  shared_preload_libraries: "pg_stat_statements",
  autovacuum: "off",
});
const folder = fs.mkdtempSync(`${os.tmpdir()}/holdfast-scale-`);
try {
  for (const name of wanted) {
    const begun = performance.now();
    const { figures, pictures } = await CURVES[name]({
      serverUrl: server.url,
      folder,
      max: Number(values.max),
      rounds: Number(values.rounds),
      say: (line) => process.stderr.write(`${line}\n`),
    });
    const [cpu] = os.cpus();
    const setting = {
      at: new Date().toISOString().slice(0, 10),
      machine: `${os.cpus().length} × ${cpu?.model.trim()}, ${Math.round(os.totalmem() / 2 ** 30)} GiB`,
      load: os.loadavg().map((each) => Number(each.toFixed(1))),
      node: process.version,
      seconds: Math.round((performance.now() - begun) / 1000),
    };
    const text = `${JSON.stringify({ curve: name, setting, figures }, null, 2)}\n`;
    fs.mkdirSync(folderOf("curves"), { recursive: true });
    fs.writeFileSync(folderOf(`curves/${name}.json`), text);
    for (const [file, curve] of Object.entries(pictures))
      fs.writeFileSync(folderOf(`../docs/images/scale-${file}.svg`), plot(curve));
    console.log(text);
  }
} finally {
  await server.stop();
  fs.rmSync(folder, { recursive: true, force: true });
}
