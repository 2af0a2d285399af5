// Tests which variables of the environment are named as unknown.

import { expect, test } from "vitest";
import { unknownVariables } from "./variables.js";

test("a variable that is nearly a known one is named with the one that was meant", () => {
  expect(unknownVariables({ HOLDFAST_POL_INTERVAL: "5s" })).toEqual([
    { variable: "HOLDFAST_POL_INTERVAL", hint: "Did you mean HOLDFAST_POLL_INTERVAL?" },
  ]);
  expect(unknownVariables({ HOLDFAST_DATABASE: "sqlite:a.db" })).toEqual([
    { variable: "HOLDFAST_DATABASE", hint: "Did you mean HOLDFAST_DATABASE_URL?" },
  ]);
});

test("one that is like no other is named without a guess, and never with its value", () => {
  const [found] = unknownVariables({ HOLDFAST_KITCHEN: "hunter2" });
  expect(found?.variable).toBe("HOLDFAST_KITCHEN");
  expect(found?.hint).toMatch(/^No variable of Holdfast has a name like this/);
  expect(JSON.stringify(found)).not.toContain("hunter2");
});

test("known variables, variables for tests and those of other programs are not reported", () => {
  const env = {
    ...{ HOLDFAST_APP: "shop", HOLDFAST_TEST_POSTGRES_URL: "postgres://db", PATH: "/bin" },
    ...{ MY_HOLDFAST_APP: "x", HOLDFAST: "x" },
  };
  expect(unknownVariables(env)).toEqual([]);
});

test("a flood of unknown variables is cut", () => {
  const names = Array.from({ length: 500 }, (_, at) => [`HOLDFAST_X${at}`, "1"]);
  expect(unknownVariables(Object.fromEntries(names))).toHaveLength(20);
});
