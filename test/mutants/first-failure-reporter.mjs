// Tells scripts/mutants.mjs what a run of vitest found. The reports of vitest itself leave out what
// failed last before a file bailed: its tests have an outcome by then, but their file has none.

import fs from "node:fs";

/**
 * @typedef {object} Found
 * @property {number} passed
 * @property {readonly { test: string, message: string }[]} failures of tests, as the files have them
 * @property {readonly string[]} unloadable what files that could not be loaded said
 * @property {readonly string[]} unhandled errors outside of any test
 */

export default class FirstFailureReporter {
  /**
   * @param {readonly import("vitest/node").TestModule[]} modules
   * @param {readonly { message: string }[]} unhandled
   */
  onTestRunEnd(modules, unhandled) {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    /** @type {Found} */
    const found = {
      passed: tests.filter((each) => each.result().state === "passed").length,
      failures: tests
        .filter((each) => each.result().state === "failed")
        .map((each) => ({
          test: each.fullName,
          message: each.result().errors?.[0]?.message ?? "",
        })),
      unloadable: modules.flatMap((module) => module.errors().map(({ message }) => message)),
      unhandled: unhandled.map(({ message }) => message),
    };
    fs.writeFileSync(/** @type {string} */ (process.env.MUTANTS_FOUND), JSON.stringify(found));
  }
}
