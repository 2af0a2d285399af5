// Where the systems of examples/ are tested: a SQLite file of its own, and a PostgreSQL database of its own.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { test as base } from "vitest";

export const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;
export const EXAMPLES = path.resolve(import.meta.dirname, "../../examples");

export type Place = {
  readonly kind: "sqlite" | "postgres";
  /** The options of the application. */
  readonly url: string;
  /** Clean-ups at the end of the test, the last one first, while the database is still there. */
  after(end: () => unknown): void;
};

let made = 0;

/** A test with an empty database of its own. */
export function placed(kind: Place["kind"]) {
  return base.extend<{ place: Place }>({
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads what a fixture needs from its pattern.
    place: async ({}, use) => {
      const { url, remove } = kind === "sqlite" ? sqlitePlace() : await postgresPlace();
      const endings: (() => unknown)[] = [];
      await use({ kind, url, after: (end) => void endings.push(end) });
      for (const end of endings.reverse()) await end();
      await remove();
    },
  });
}

function sqlitePlace() {
  const folder = mkdtempSync(path.join(tmpdir(), "holdfast-systems-"));
  const remove = async () => rmSync(folder, { recursive: true, force: true });
  return { url: `sqlite:${path.join(folder, "app.db")}`, remove };
}

async function postgresPlace() {
  const name = `system_${process.pid}_${++made}`;
  const admin = new pg.Client({ connectionString: POSTGRES_URL });
  await admin.connect();
  await admin.query(`create database ${name}`);
  const url = new URL(String(POSTGRES_URL));
  url.pathname = `/${name}`;
  return {
    url: url.href,
    remove: async () => {
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    },
  };
}
