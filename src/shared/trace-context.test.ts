// Trace contexts: as the standard writes them, and as they are stored.

import { expect, test } from "vitest";
import { requireTags } from "./names.js";
import { formatTraceparent, parseTraceparent, splitTags, tagsToStore } from "./trace-context.js";

const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

test("a trace context comes back as it was written", () => {
  const context = parseTraceparent(TRACE);
  expect(context).toEqual({
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: "00f067aa0ba902b7",
    isSampled: true,
  });
  expect(formatTraceparent(context as NonNullable<typeof context>)).toBe(TRACE);
  expect(parseTraceparent(TRACE.replace(/01$/, "00"))?.isSampled).toBe(false);
});

test.for([
  "",
  "hello",
  TRACE.toUpperCase(),
  TRACE.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0".repeat(32)),
  TRACE.replace("00f067aa0ba902b7", "0".repeat(16)),
  TRACE.replace(/^00/, "ff"),
  `${TRACE}\n`,
])("%j is no trace context", (text) => {
  expect(parseTraceparent(text)).toBe(null);
});

test("the stored trace is separated from the tags, and no user's tag can pass for it", () => {
  expect(splitTags(tagsToStore(["eu"], TRACE))).toEqual({ tags: ["eu"], trace: TRACE });
  expect(splitTags(tagsToStore([], TRACE))).toEqual({ tags: [], trace: TRACE });
  expect(splitTags(tagsToStore(["eu"], undefined))).toEqual({ tags: ["eu"] });
  expect(() => requireTags([`traceparent=${TRACE}`], "tags")).toThrow(/tags\[0\]: .*reserved/);
});
