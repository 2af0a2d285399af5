// The documents as a site, in a browser: readable on a small screen, by everybody, in both colours.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildSite } from "../../scripts/site.mjs";
import { hasChromium } from "./chromium.js";
import { openBrowser } from "./stage.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe.runIf(hasChromium())("the site", () => {
  const out = mkdtempSync(path.join(os.tmpdir(), "holdfast-site-"));
  let browser: Browser;
  let pages: { url: string }[];

  beforeAll(async () => {
    pages = buildSite({ out });
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(out, { recursive: true, force: true });
  });

  test("no page is wider than a screen of 360 pixels", async () => {
    const page = await browser.newPage({ viewport: { width: 360, height: 800 } });
    await page.route("**/*.png", (route) => route.abort());
    const wide: string[] = [];
    for (const { url } of pages) {
      await page.goto(addressOf(url), { waitUntil: "domcontentloaded" });
      const width = await page.evaluate("document.documentElement.scrollWidth");
      if (Number(width) > 360) wide.push(`${url}: ${width}`);
    }
    await page.close();
    expect(wide).toEqual([]);
  });

  test.for(["light", "dark"] as const)(
    "a page in %s breaks no rule for those who see little",
    async (colorScheme) => {
      const page = await browser.newPage({ colorScheme });
      for (const url of ["index.html", "guides/missed-runs.html"]) {
        await page.goto(addressOf(url));
        await page.evaluate(AXE);
        const found = (await page.evaluate("axe.run()")) as { violations: { id: string }[] };
        expect(
          found.violations.map(({ id }) => id),
          url,
        ).toEqual([]);
      }
      await page.close();
    },
  );

  test("a page opens at its beginning, with its own place in the contents in sight", async () => {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    for (const url of ["index.html", "guides/deploy.html", "contributing.html", "security.html"]) {
      await page.goto(addressOf(url));
      expect(await page.evaluate("scrollY"), url).toBe(0);
      const place = page.locator(".side [aria-current]");
      if ((await place.count()) === 0) continue;
      const { y = -1, height = 0 } = (await place.boundingBox()) ?? {};
      expect(y, url).toBeGreaterThan(0);
      expect(y + height, url).toBeLessThan(900);
    }
    await page.close();
  });

  test("search finds a heading of another page and leads to it", async () => {
    const page = await browser.newPage();
    await page.goto(addressOf("guides/schedules.html"));
    await page.keyboard.press("/");
    await page.keyboard.type("takeover lease");
    await page.click(".found a");
    expect(page.url()).toBe(`${addressOf("internals/lease-and-fence.html")}#takeover`);
    await page.close();
  });

  function addressOf(url: string): string {
    return pathToFileURL(path.join(out, url)).href;
  }
});
