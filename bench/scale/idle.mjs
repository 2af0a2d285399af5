// Measures an idle instance: statements, processor time and memory, on both databases, beside a Node that has loaded
// nothing. Each runs in a process of its own.

import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";

const CHILD = fileURLToPath(new URL("idle-child.mjs", import.meta.url));

async function measure({ serverUrl, folder, rounds, say }) {
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  await admin.query("create database scale_idle");
  const postgres = new URL(serverUrl);
  postgres.pathname = "/scale_idle";
  const urls = { postgres: postgres.href, sqlite: `sqlite:${path.join(folder, "idle.db")}` };
  const samples = { postgres: [], sqlite: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const [engine, url] of Object.entries(urls)) {
      samples[engine].push(await measured(url));
      say(`idle ${engine} ${JSON.stringify(samples[engine].at(-1))}`);
    }
  }
  await admin.query("drop database scale_idle with (force)");
  await admin.end();
  return Object.fromEntries(Object.entries(samples).map(([engine, all]) => [engine, medians(all)]));
}

/** A handful of figures needs no picture. */
export const idleCurve = { measure, draw: () => ({}) };

function medians(all) {
  const middle = (name) => all.map((each) => each[name]).sort((a, b) => a - b)[all.length >> 1];
  return Object.fromEntries(Object.keys(all[0]).map((name) => [name, middle(name)]));
}

function measured(url) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--expose-gc", CHILD, url], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.on("data", (chunk) => (said += chunk));
    child.once("exit", (code) =>
      code === 0 ? resolve(JSON.parse(said)) : reject(new Error(`It ended with ${code}.`)),
    );
  });
}
