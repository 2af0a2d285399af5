// What a command that could not be done advises.

import { expect, test } from "vitest";
import { StoreUnavailableError } from "../core/errors.js";
import { describeExit } from "./failure.js";

test("a file that this user may not write is not taken for a server that is down", () => {
  const cause = new Error("attempt to write a readonly database");
  const failure = describeExit(
    new StoreUnavailableError({ tried: "open the SQLite file", url: "sqlite:app.db", cause }),
  );
  expect(failure).toMatchObject({ exit: 3, error: "store_unavailable" });
  expect(failure?.message).toMatch(/may not write the file or the folder that it is in/);
  expect(failure?.message).not.toMatch(/whether the server runs/);
});
