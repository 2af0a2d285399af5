// The documents as a site, in a browser: readable on a small screen and in both colours, with a search that finds.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildSite } from "../../scripts/site.mjs";
import { hasChromium } from "./chromium.js";
import { openBrowser } from "./stage.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FOLDER = path.resolve(import.meta.dirname, `../../.holdfast/site-${process.pid}`);
const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

describe.runIf(hasChromium())("the site", () => {
  const out = mkdtempSync(path.join(os.tmpdir(), "holdfast-site-"));
  let browser: Browser;
  let server: Server;
  let origin: string;
  let urls: string[];

  beforeAll(async () => {
    urls = buildSite({ out, folder: FOLDER }).map(({ page }) => `/${page.replace(/\.md$/, "")}`);
    server = createServer(({ url = "/" }, response) => {
      const name = decodeURIComponent(url.split("?")[0] ?? "").replace(/\/$/, "/index");
      const file = [name, `${name}.html`]
        .map((each) => path.join(out, each))
        .find((each) => existsSync(each) && path.extname(each) !== "");
      if (file === undefined) return response.writeHead(404).end();
      response.writeHead(200, { "content-type": TYPES[path.extname(file)] ?? "image/png" });
      return response.end(readFileSync(file));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await openBrowser();
    // No limit for the build: it takes as long as the machine is busy.
  }, 0);
  afterAll(async () => {
    await browser?.close();
    server?.close();
    rmSync(out, { recursive: true, force: true });
    rmSync(FOLDER, { recursive: true, force: true });
  });

  test("no page is wider than a screen of 360 pixels", async () => {
    const page = await browser.newPage({ viewport: { width: 360, height: 800 } });
    await page.route("**/*.{png,js}", (route) => route.abort());
    const wide: string[] = [];
    for (const url of urls) {
      await page.goto(origin + url, { waitUntil: "domcontentloaded" });
      const width = await page.evaluate("document.documentElement.scrollWidth");
      if (Number(width) > 360) wide.push(`${url}: ${width}`);
    }
    await page.close();
    expect(wide).toEqual([]);
  });

  test.for(["light", "dark"] as const)(
    "the text of a page in %s breaks no rule for those who see little",
    async (colorScheme) => {
      const page = await browser.newPage({ colorScheme });
      for (const url of ["/", "/guides/missed-runs"]) {
        await page.goto(origin + url);
        await page.evaluate(AXE);
        const found = (await page.evaluate("axe.run('.vp-doc')")) as {
          violations: { id: string; nodes: { html: string }[] }[];
        };
        expect(
          found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
          url,
        ).toEqual([]);
      }
      await page.close();
    },
  );

  test("a screenshot is shown in the colours of the page", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await browser.newPage({ colorScheme });
      await page.goto(`${origin}/guides/dashboard`);
      const shown = await page.locator(".vp-doc img:visible").first().getAttribute("src");
      expect(shown).toContain(`-${colorScheme}`);
      await page.close();
    }
  });

  test("search finds a heading of another page and leads to it", async () => {
    const page = await browser.newPage();
    await page.goto(`${origin}/guides/schedules`);
    await page.click(".VPNavBarSearch button");
    await page.fill("input[type=search]", "takeover");
    await page.locator(".results a[href$='/internals/lease-and-fence#takeover']").click();
    await page.waitForURL(`${origin}/internals/lease-and-fence#takeover`);
    await page.close();
  });

  test("without a public address no page offers to edit it, and llms.txt is there", async () => {
    expect(readFileSync(path.join(out, "guides/schedules.html"), "utf8")).not.toContain(
      "edit-link",
    );
    expect(readFileSync(path.join(out, "llms.txt"), "utf8")).toContain("# Holdfast");
  });
});
