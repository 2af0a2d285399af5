// Where a setting comes from: a flag, an option in code, the environment, the default, in this order. Every
// variable has its line here, and the example file is what the defaults are.

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { readPlace } from "../src/cli/work.js";
import { readSecrets } from "../src/http/credentials.js";
import { readTrustedProxies } from "../src/http/origin.js";
import {
  CONSTRUCTOR_OPTIONS,
  DEFAULT_DATABASE,
  type Environment,
  type HoldfastOptions,
  readConfig,
  readStart,
  type StartOptions,
} from "../src/instance/config.js";
import { readConfigWithin } from "../src/instance/context.js";

const ROOT = path.resolve(import.meta.dirname, "..");
const EXAMPLE = readFileSync(path.join(ROOT, ".env.example"), "utf8");

/** The value of a setting under this environment. */
type Setting = {
  readonly of: (given: Given) => unknown;
  readonly fallback: unknown;
  readonly env: readonly [text: string, value: unknown];
  readonly option?: readonly [option: HoldfastOptions, value: unknown];
  readonly flag?: readonly [flag: Flag, value: unknown];
};
type Flag = { database?: string; start?: StartOptions; host?: string; port?: number };
type Given = { readonly flag: Flag; readonly option: HoldfastOptions; readonly env: Environment };

const config = ({ flag: { database }, option, env }: Given) =>
  readConfigWithin(database === undefined ? {} : { database }, option, env);
const start = (given: Given) => readStart(given.flag.start ?? {}, config(given));
const place = ({ flag: { host, port }, env }: Given) =>
  readPlace(
    {
      http: true,
      ...(host === undefined ? {} : { host }),
      ...(port === undefined ? {} : { port }),
    },
    env,
  );
const secret = (scope: "trigger" | "enqueue" | "worker" | "read" | "admin"): Setting => ({
  of: ({ env }) => readSecrets({}, env).find("a secret of some length")?.scopes.has(scope) ?? false,
  fallback: false,
  env: ["a secret of some length", true],
});

const SETTINGS: Readonly<Record<string, Setting>> = {
  HOLDFAST_DATABASE_URL: {
    of: (given) => config(given).database,
    fallback: "sqlite:.holdfast/holdfast.db",
    env: ["sqlite:env.db", "sqlite:env.db"],
    option: [{ database: "sqlite:code.db" }, "sqlite:code.db"],
    flag: [{ database: "sqlite:flag.db" }, "sqlite:flag.db"],
  },
  HOLDFAST_APP: {
    of: (given) => config(given).app,
    fallback: null,
    env: ["env", "env"],
    option: [{ app: "code" }, "code"],
  },
  HOLDFAST_RELEASE: {
    of: (given) => config(given).release,
    fallback: null,
    env: ["1.2.3", "1.2.3"],
    option: [{ release: "2.0.0" }, "2.0.0"],
  },
  HOLDFAST_WORKER_ENABLED: {
    of: (given) => start(given).jobs === null,
    fallback: true,
    env: ["false", false],
    flag: [{ start: { worker: true } }, true],
  },
  HOLDFAST_SCHEDULER_ENABLED: {
    of: (given) => start(given).isScheduler,
    fallback: true,
    env: ["0", false],
    flag: [{ start: { scheduler: true } }, true],
  },
  HOLDFAST_PUBLIC_URL: {
    of: (given) => config(given).dispatch.publicUrl,
    fallback: null,
    env: ["https://env.example.com", "https://env.example.com"],
    option: [{ publicUrl: "https://code.example.com" }, "https://code.example.com"],
  },
  HOLDFAST_START_TIMEOUT: {
    of: (given) => config(given).startTimeoutMs,
    fallback: 30_000,
    env: ["2m", 120_000],
    option: [{ startTimeout: "5s" }, 5_000],
  },
  HOLDFAST_POLL_INTERVAL: {
    of: (given) => config(given).pollMs,
    fallback: 1_000,
    env: ["2s", 2_000],
    option: [{ poll: "3s" }, 3_000],
  },
  HOLDFAST_HISTORY_RETENTION_DAYS: {
    of: (given) => config(given).keepMs,
    fallback: 30 * 86_400_000,
    env: ["7", 7 * 86_400_000],
    option: [{ retention: "2d" }, 2 * 86_400_000],
  },
  HOLDFAST_HOST: {
    of: (given) => place(given)?.host,
    fallback: "127.0.0.1",
    env: ["localhost", "localhost"],
    flag: [{ host: "::1" }, "::1"],
  },
  HOLDFAST_PORT: {
    of: (given) => place(given)?.port,
    fallback: 4780,
    env: ["8080", 8080],
    flag: [{ port: 9090 }, 9090],
  },
  HOLDFAST_TRUSTED_PROXIES: {
    of: ({ env }) => readTrustedProxies(undefined, env).count,
    fallback: 0,
    env: ["10.0.0.0/8,127.0.0.1", 2],
  },
  HOLDFAST_TRIGGER_SECRET: secret("trigger"),
  HOLDFAST_ENQUEUE_SECRET: secret("enqueue"),
  HOLDFAST_WORKER_SECRET: secret("worker"),
  HOLDFAST_READ_SECRET: secret("read"),
  HOLDFAST_ADMIN_SECRET: secret("admin"),
  HOLDFAST_LOCK_LEASE: {
    of: (given) => config(given).lockLeaseMs,
    fallback: 360_000,
    env: ["1m", 60_000],
    option: [{ lockLease: "2m" }, 120_000],
  },
  HOLDFAST_LOCKING_ENABLED: {
    of: (given) => config(given).isLockingEnabled,
    fallback: true,
    env: ["false", false],
    option: [{ locking: true }, true],
  },
  HOLDFAST_LOG_LEVEL: {
    of: (given) => config(given).logLevel,
    fallback: "warn",
    env: ["debug", "debug"],
  },
};

/** Variables that only real processes show; see test/cli/work.test.ts. */
const ELSEWHERE = ["HOLDFAST_LOG_FORMAT"];

test.for(Object.entries(SETTINGS))("%s", ([variable, setting]) => {
  const { of, fallback, env, option, flag } = setting;
  const [text, fromEnv] = env;
  const set = { [variable]: text };
  const given = (parts: Partial<Given>) => of({ flag: {}, option: {}, env: {}, ...parts });
  expect(given({})).toEqual(fallback);
  expect(given({ env: set })).toEqual(fromEnv);
  expect(fromEnv).not.toEqual(fallback);
  if (option) expect(given({ env: set, option: option[0] })).toEqual(option[1]);
  if (flag) expect(given({ env: set, option: option?.[0] ?? {}, flag: flag[0] })).toEqual(flag[1]);
});

test("every variable has its line", () => {
  const known = [...new Set(EXAMPLE.match(/\bHOLDFAST_[A-Z_]+\b/g))].sort();
  expect([...Object.keys(SETTINGS), ...ELSEWHERE].sort()).toEqual(known);
});

test(".env.example has the defaults", () => {
  const env = Object.fromEntries(
    [...EXAMPLE.matchAll(/^(HOLDFAST_[A-Z_]+)=(.*)$/gm)].map(([, name = "", value]) => [
      name,
      value,
    ]),
  );
  expect(Object.keys(env).length).toBeGreaterThan(10);
  expect(readConfig({}, env)).toEqual(readConfig({}, {}));
  const { isAnyPort: _, ...shown } = readPlace({ http: true }, env) ?? {};
  expect(readPlace({ http: true }, {})).toMatchObject(shown);
});

test("the reference has every option of the constructor, and no other", () => {
  const reference = readFileSync(path.join(ROOT, "docs/reference/configuration.md"), "utf8");
  const [, table = ""] = /## `new Holdfast\(options\)`(.*?)\n## /s.exec(reference) ?? [];
  const shown = [...table.matchAll(/^\| (`.*?`) \| /gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  expect(shown.sort()).toEqual([...CONSTRUCTOR_OPTIONS].sort());
});

test("in production an instance without a named database is refused instead of making a file", () => {
  const production = { NODE_ENV: "production" };
  expect(() => readConfig({}, production)).toThrow(
    /database: is not named.*NODE_ENV is production.*HOLDFAST_DATABASE_URL/,
  );
  const named = { ...production, HOLDFAST_DATABASE_URL: "sqlite:app.db" };
  expect(readConfig({}, named).database).toBe("sqlite:app.db");
  expect(readConfig({ database: "sqlite:app.db" }, production).database).toBe("sqlite:app.db");
  expect(readConfig({}, { NODE_ENV: "development" }).database).toBe(DEFAULT_DATABASE);
});
