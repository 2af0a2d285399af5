// Which databases `dev` keeps away from.

import { hostname } from "node:os";
import { afterEach, expect, test, vi } from "vitest";
import { isBeyondThisMachine, readDatabaseFlag } from "./database.js";

afterEach(() => vi.unstubAllEnvs());

test.for([
  "sqlite:app.db",
  "sqlite::memory:",
  "postgres:///app",
  "postgres://app@localhost/app",
  "postgres://app:secret@LOCALHOST:5433/app",
  "postgresql://127.0.0.1/app",
  "postgresql://127.8.9.10/app",
  "postgres://app@[::1]:5432/app",
  "postgres:///app?host=/var/run/postgresql",
  "postgres://app@%2Fvar%2Frun%2Fpostgresql/app",
  `postgres://${hostname()}/app`,
])("%s is on this machine", (url) => {
  vi.stubEnv("PGHOST", undefined);
  expect(isBeyondThisMachine(url)).toBe(false);
});

test.for([
  "postgres://db.example.com/app",
  "postgres://app:secret@10.0.0.7/app",
  "postgres://localhost.example.com/app",
  "postgres://1270.0.0.1.example/app",
  "postgres://localhost/app?host=db.example.com",
  "postgres://one,two/app",
  "postgres://",
  "nonsense",
])("%s is beyond it, or may be", (url) => {
  vi.stubEnv("PGHOST", "db.example.com");
  expect(isBeyondThisMachine(url)).toBe(true);
});

test("a path that was typed is one of this folder", () => {
  expect(readDatabaseFlag("sqlite:data/app.db")).toBe(`sqlite:${process.cwd()}/data/app.db`);
  expect(readDatabaseFlag("sqlite:/srv/app.db")).toBe("sqlite:/srv/app.db");
  expect(readDatabaseFlag("sqlite::memory:")).toBe("sqlite::memory:");
  expect(readDatabaseFlag("postgres://localhost/app")).toBe("postgres://localhost/app");
});
