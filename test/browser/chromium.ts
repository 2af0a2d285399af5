// Where the browser of the tests is; without one they skip themselves and say so.

import { existsSync } from "node:fs";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export function chromiumPath(): string | undefined {
  const given = process.env.HOLDFAST_TEST_CHROMIUM;
  return given ?? PLACES.find((place) => existsSync(place));
}

export function hasChromium(): boolean {
  const found = chromiumPath() !== undefined;
  if (!found && process.env.CI) throw new Error("Chromium is required here.");
  if (!found) console.warn("\nNO CHROMIUM: the tests of the page are skipped.\n");
  return found;
}
