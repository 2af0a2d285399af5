// Stored text on a terminal: whatever was stored, it is shown and does nothing.

import { expect, test } from "vitest";
import { plain } from "./shell.js";

test("control characters are shown as a mark, and a text stays on its line", () => {
  expect(plain("a\u001b[2Jb\u0007c\u009bd")).toBe("a\uFFFD[2Jb\uFFFDc\uFFFDd");
  expect(plain("one\r\ntwo\tthree\u2028four")).toBe("one  two three four");
});

test("direction marks are removed; text of every language stays as it is", () => {
  expect(plain("run \u202egnp.exe\u202c \u2066x\u2069")).toBe(
    "run \uFFFDgnp.exe\uFFFD \uFFFDx\uFFFD",
  );
  expect(plain("שלום 你好 🙂 e\u0301")).toBe("שלום 你好 🙂 e\u0301");
});
