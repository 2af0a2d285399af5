// Where the systems of examples/ are tested: a SQLite file of its own, and a PostgreSQL database of its own.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { test as base } from "vitest";

export const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;
export const EXAMPLES = path.resolve(import.meta.dirname, "../../examples");

export type Place = { readonly kind: "sqlite" | "postgres"; readonly url: string };

let made = 0;

/** A test with an empty database of each kind; `place.url` is what the application is given. */
export function placed(kind: Place["kind"]) {
  return base.extend<{ place: Place }>({
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads what a fixture needs from its pattern.
    place: async ({}, use) => {
      const { place, end } = kind === "sqlite" ? sqlitePlace() : await postgresPlace();
      await use(place);
      await end();
    },
  });
}

function sqlitePlace() {
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-systems-"));
  const place: Place = { kind: "sqlite", url: `sqlite:${path.join(folder, "app.db")}` };
  return { place, end: async () => rmSync(folder, { recursive: true, force: true }) };
}

async function postgresPlace() {
  const name = `system_${process.pid}_${++made}`;
  const admin = new pg.Client({ connectionString: POSTGRES_URL });
  await admin.connect();
  await admin.query(`create database ${name}`);
  const url = new URL(String(POSTGRES_URL));
  url.pathname = `/${name}`;
  const place: Place = { kind: "postgres", url: url.href };
  return {
    place,
    end: async () => {
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    },
  };
}
