// Tells scripts/mutants.mjs what a run of vitest found: the first failures in the order in which they
// happened, and how many tests passed. The reports of vitest itself leave out files that bailed.

import fs from "node:fs";

/**
 * @typedef {object} Found
 * @property {number} passed
 * @property {readonly { test: string, message: string }[]} failures of tests
 * @property {readonly string[]} unloadable what files that could not be loaded said
 * @property {readonly string[]} unhandled errors outside of any test
 */

export default class FirstFailureReporter {
  #passed = 0;
  /** @type {{ test: string, message: string }[]} */
  #failures = [];

  /** @param {import("vitest/node").TestCase} testCase */
  onTestCaseResult(testCase) {
    const { state, errors = [] } = testCase.result();
    if (state === "passed") this.#passed += 1;
    if (state === "failed")
      this.#failures.push({ test: testCase.fullName, message: errors[0]?.message ?? "" });
  }

  /**
   * @param {readonly import("vitest/node").TestModule[]} modules
   * @param {readonly { message: string }[]} unhandled
   */
  onTestRunEnd(modules, unhandled) {
    /** @type {Found} */
    const found = {
      passed: this.#passed,
      failures: this.#failures,
      unloadable: modules.flatMap((module) => module.errors().map(({ message }) => message)),
      unhandled: unhandled.map(({ message }) => message),
    };
    fs.writeFileSync(/** @type {string} */ (process.env.MUTANTS_FOUND), JSON.stringify(found));
  }
}
