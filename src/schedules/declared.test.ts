// Which definition in code is the newer one.

import { describe, expect, test } from "vitest";
import { compareReleases, isNewerDefinition } from "./declared.js";

describe("releases", () => {
  test.each([
    ["7", "12"],
    ["1.9.0", "1.10.0"],
    ["v1.2.3", "2.0.0"],
    ["1.0.0-alpha", "1.0.0-alpha.1"],
    ["1.0.0-alpha.1", "1.0.0-alpha.beta"],
    ["1.0.0-beta.2", "1.0.0-beta.11"],
    ["1.0.0-rc.1", "1.0.0"],
  ])("%s is older than %s", (older, newer) => {
    expect(compareReleases(older, newer)).toBeLessThan(0);
    expect(compareReleases(newer, older)).toBeGreaterThan(0);
  });

  test("equal ones and those that differ in build data alone are equal", () => {
    expect(compareReleases("3", "3")).toBe(0);
    expect(compareReleases("v1.2.3+left", "1.2.3+right")).toBe(0);
    expect(compareReleases("1.0.0-rc.1", "1.0.0-rc.1")).toBe(0);
  });

  test.each([
    [null, "1"],
    ["1", null],
    ["2026-01-15", "1.0.0"],
    ["7", "1.0.0"],
    ["main", "main"],
    ["1.2", "1.3"],
    ["", "1"],
  ])("%s and %s do not compare", (left, right) => {
    expect(compareReleases(left, right)).toBeNull();
  });
});

describe("a definition", () => {
  const seen = [
    { hash: "old", firstSeenAt: 1 },
    { hash: "new", firstSeenAt: 2 },
  ];
  const is = (candidate: [string, string | null], current: [string, string | null]) =>
    isNewerDefinition({
      candidate: { hash: candidate[0], release: candidate[1] },
      current: { hash: current[0], release: current[1] },
      seen,
    });

  test("is newer by its release, whichever was seen first", () => {
    expect(is(["old", "2"], ["new", "1"])).toBe(true);
    expect(is(["new", "1"], ["old", "2"])).toBe(false);
    expect(is(["unseen", "1"], ["old", "2"])).toBe(false);
  });

  test("is newer by when it was first seen where releases are equal or do not compare", () => {
    for (const release of ["3", null, "main"]) {
      expect(is(["new", release], ["old", release])).toBe(true);
      expect(is(["old", release], ["new", release])).toBe(false);
    }
    expect(is(["old", "main"], ["new", "1"])).toBe(false);
  });

  test("that is unknown is newer, and so is any if the current one is unknown", () => {
    expect(is(["unseen", null], ["new", null])).toBe(true);
    expect(is(["old", null], ["unknown", null])).toBe(true);
  });

  test("never replaces itself", () => {
    expect(is(["old", null], ["old", null])).toBe(false);
  });
});
