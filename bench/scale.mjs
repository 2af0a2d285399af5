// How Holdfast grows: one curve per command, as figures in bench/curves and as a picture in docs/images. Work is
// counted (buffers, statements, pages), not timed, wherever it can be: a count is the same on a busy machine.
//
//   node bench/scale.mjs CURVE [--max 10000000] [--rounds 3]      after `npm run build`
//   node bench/scale.mjs CURVE --draw                             the picture again, from the figures that are there
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
    draw: { type: "boolean", default: false },
  },
});
const wanted = positionals[0] === "all" ? Object.keys(CURVES) : positionals;
if (wanted.length === 0 || wanted.some((name) => !(name in CURVES))) {
  console.error(
    `usage: node bench/scale.mjs CURVE [--max N] [--rounds N] [--draw]; curves: ${Object.keys(CURVES).join(", ")}, all`,
  );
  process.exit(2);
}

const fileOf = (name) => folderOf(`curves/${name}.json`);

if (values.draw) for (const name of wanted) draw(name);
else await measureAll();

async function measureAll() {
  const server = await startPostgresServer({
    shared_preload_libraries: "pg_stat_statements",
    autovacuum: "off",
  });
  const folder = fs.mkdtempSync(`${os.tmpdir()}/holdfast-scale-`);
  try {
    for (const name of wanted) {
      const begun = performance.now();
      const figures = await CURVES[name].measure({
        serverUrl: server.url,
        serverPid: server.pid,
        folder,
        max: Number(values.max),
        rounds: Number(values.rounds),
        say: (line) => process.stderr.write(`${line}\n`),
      });
      const setting = settingOf(Math.round((performance.now() - begun) / 1000));
      const text = `${JSON.stringify({ curve: name, setting, figures }, null, 2)}\n`;
      fs.mkdirSync(folderOf("curves"), { recursive: true });
      fs.writeFileSync(fileOf(name), text);
      draw(name);
      console.log(text);
    }
  } finally {
    await server.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

function settingOf(seconds) {
  const [cpu] = os.cpus();
  return {
    at: new Date().toISOString().slice(0, 10),
    machine: `${os.cpus().length} × ${cpu?.model.trim()}, ${Math.round(os.totalmem() / 2 ** 30)} GiB`,
    load: os.loadavg().map((each) => Number(each.toFixed(1))),
    node: process.version,
    seconds,
  };
}

function draw(name) {
  const { figures } = JSON.parse(fs.readFileSync(fileOf(name), "utf8"));
  for (const [file, curve] of Object.entries(CURVES[name].draw(figures)))
    fs.writeFileSync(folderOf(`../docs/images/scale-${file}.svg`), plot(curve));
}
