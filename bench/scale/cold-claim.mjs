// One claim on a SQLite file by a process whose code is warm and whose cache is empty: how many pages it reads. Counted by
// the kernel (/proc/self/io), so this is for Linux. The file is removed afterwards.
//
//   node bench/scale/cold-claim.mjs FILE

import fs from "node:fs";
import { Holdfast } from "../../build/index.js";
import { JOB, logger } from "./filled.mjs";

const LIMIT = 100;
const PAGE = 4096;
const [, , file] = process.argv;
const bytesRead = () => Number(/rchar: (\d+)/.exec(fs.readFileSync("/proc/self/io", "utf8"))[1]);

async function claim(from) {
  const holdfast = new Holdfast({ database: `sqlite:${from}`, logger });
  holdfast.job(JOB, { run: async () => {} });
  await holdfast.queues.list();
  const asked = { instance: "scale", jobs: [JOB], limit: LIMIT };
  const before = bytesRead();
  const { length } = await holdfast.remote.claim(asked);
  const pages = (bytesRead() - before) / PAGE;
  await holdfast.stop();
  return { length, pages: Math.round(pages) };
}

const warm = `${file}.warm`;
const first = new Holdfast({ database: `sqlite:${warm}`, logger });
await first.job(JOB, { run: async () => {} }).enqueueMany(Array(LIMIT).fill({ number: 1 }));
await first.stop();
await claim(warm);
const { length, pages } = await claim(file);
if (length !== LIMIT) throw new Error(`A claim of ${LIMIT} got ${length}.`);
const mebibytes = Math.round(fs.statSync(file).size / 2 ** 20);
for (const each of [warm, file])
  for (const end of ["", "-wal", "-shm"]) fs.rmSync(each + end, { force: true });
console.log(JSON.stringify({ pages, mebibytes }));
