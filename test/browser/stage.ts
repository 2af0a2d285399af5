// Provides the setting of a browser test: an instance on a real database, its server, and a real browser. It records
// every error, unexpected content and policy violation of the page.

import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import pg from "pg";
import { type Browser, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { createHttpHandler, type HandlerOptions } from "../../build/http/handler.js";
import { type Served, serve } from "../../build/http/server.js";
import { Holdfast, type HoldfastOptions, PermanentError } from "../../build/index.js";
import { createTestHoldfast, type TestKit } from "../../build/testing/index.js";
import { PATIENCE_MS } from "../support/until.js";
import { chromiumPath } from "./chromium.js";

export { createTestHoldfast, Holdfast, PermanentError };

export const SECRETS = { read: "the-reading-secret", admin: "the-admin-secret" } as const;
const POSTGRES_URL = process.env.HOLDFAST_TEST_POSTGRES_URL;
const hasPostgres = POSTGRES_URL !== undefined;
/** Both, for the one test that needs them. */
export const BOTH = ["sqlite", ...(hasPostgres ? ["postgres"] : [])] as const;
/** The one of the project: browser is on SQLite, browser-postgres on the other. */
export const DATABASES = BOTH.filter(
  (name) => name === (process.env.HOLDFAST_TEST_BROWSER_ON ?? "sqlite"),
);

/** Refused or unreachable calls are the business of the test that makes them. */
const EXPECTED = /Failed to load resource|EventSource|net::ERR/;

export class Stage {
  readonly holdfast: Holdfast;
  /** The errors of the pages. */
  readonly troubles: string[] = [];
  readonly #browser: Browser;
  readonly #handler: HandlerOptions;
  readonly #clear: () => Promise<void>;
  #served: Served | null = null;
  #port = 0;

  constructor(params: {
    readonly browser: Browser;
    readonly holdfast: Holdfast;
    readonly handler: HandlerOptions;
    /** Stops what runs, and removes what it stored. */
    readonly clear: () => Promise<void>;
  }) {
    this.#browser = params.browser;
    this.#handler = params.handler;
    this.#clear = params.clear;
    this.holdfast = params.holdfast;
  }

  get url(): string {
    return `${this.#served?.url ?? ""}${this.#handler.basePath ?? ""}`;
  }

  /** Opens the server, again on the port that it had. */
  async serve(): Promise<void> {
    const handler = createHttpHandler(this.holdfast, this.#handler);
    this.#served = await serve({ handler, host: "127.0.0.1", port: this.#port });
    this.#port = Number(new URL(this.#served.url).port);
  }

  async unserve(): Promise<void> {
    await this.#served?.close();
  }

  /** A page of its own, with cookies of its own. */
  async visit(
    where: string,
    options: {
      readonly width?: number;
      readonly scheme?: "light" | "dark";
      /** The zone of the reader's machine. */
      readonly zone?: string;
    } = {},
  ): Promise<Page> {
    const { width = 1280, scheme = "light", zone } = options;
    const context = await this.#browser.newContext({
      viewport: { width, height: 800 },
      colorScheme: scheme,
      ...(zone === undefined ? {} : { timezoneId: zone }),
    });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("dialog", (dialog) => {
      this.troubles.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("pageerror", (error) => void this.troubles.push(`error: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error" && !EXPECTED.test(message.text()))
        this.troubles.push(`console: ${message.text()}`);
    });
    await page.exposeFunction(
      "noteViolation",
      (what: string) => void this.troubles.push(`policy: ${what}`),
    );
    await page.addInitScript(WATCH);
    await page.goto(this.url + where);
    return page;
  }

  expectNoTrouble(): void {
    expect(this.troubles).toEqual([]);
  }

  async end(): Promise<void> {
    await Promise.all(this.#browser.contexts().map((context) => context.close()));
    await this.unserve();
    await this.#clear();
  }
}

/** In the page: what its policy refused, and how much of it moved by itself. */
const WATCH = `
document.addEventListener("securitypolicyviolation", (event) => {
  window.noteViolation(event.violatedDirective + " " + event.blockedURI);
});
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    window.shifts.push(entry.value + " " + (entry.sources || []).map((s) => (s.node && (s.node.outerHTML || s.node.textContent) || "").slice(0, 120)).join(" | "));
}).observe({ type: "layout-shift", buffered: true });
`;

export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath() ?? "", args: ["--no-sandbox"] });
}

const OPEN: HandlerOptions = { openOnLoopback: true, secrets: {} };

/** A stage on a database of its own, open to this machine unless secrets are given. */
export async function newStage(
  browser: Browser,
  database: string,
  params: { readonly handler?: HandlerOptions; readonly options?: HoldfastOptions } = {},
): Promise<Stage> {
  const handler = { ...OPEN, ...params.handler };
  const { place, remove } = database === "postgres" ? newSchema() : await newFile();
  const quiet = () => undefined;
  const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const holdfast = new Holdfast({ logger, poll: "200ms", ...place, ...params.options });
  const clear = async () => {
    await holdfast.stop({ grace: 0 });
    await remove();
  };
  return new Stage({ browser, holdfast, handler, clear });
}

/** A stage whose time is the test's: hours of history are there at once, and then it stands still. */
export function stageOf(browser: Browser, kit: TestKit<unknown>): Stage {
  const clear = () => kit.close();
  return new Stage({ browser, holdfast: kit.holdfast, handler: OPEN, clear });
}

type Place = { readonly place: HoldfastOptions; readonly remove: () => Promise<void> };

function newSchema(): Place {
  const schema = `page_${crypto.randomUUID().replaceAll("-", "_")}`;
  const remove = async () => {
    const client = new pg.Client(POSTGRES_URL);
    await client.connect();
    await client.query(`drop schema if exists "${schema}" cascade`);
    await client.end();
  };
  return { place: { database: POSTGRES_URL as string, schema }, remove };
}

async function newFile(): Promise<Place> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "holdfast-page-"));
  const remove = () => fs.rm(folder, { recursive: true, force: true });
  return { place: { database: `sqlite:${path.join(folder, "test.db")}` }, remove };
}
