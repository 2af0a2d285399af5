// Tests the advice of a command that could not do its work.

import { expect, test } from "vitest";
import { StoreReadOnlyError } from "../shared/errors.js";
import { describeExit } from "./failure.js";

test("a file that this user may not write is not taken for a server that is down", () => {
  const cause = new Error("attempt to write a readonly database");
  const failure = describeExit(new StoreReadOnlyError({ tried: "open", file: "app.db", cause }));
  expect(failure).toMatchObject({ exit: 3, error: "store_read_only" });
  expect(failure?.message).toMatch(/This process may not write the SQLite file .* or its folder/);
  expect(failure?.message).not.toMatch(/whether the server runs/);
});
