// Callback tokens: good for one run and one fence of one target.

import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { callbackToken, fenceOfToken, isCallbackToken, isEqualDigest } from "./signature.js";

const SECRET = "a-secret-of-enough-letters";
const GRANT = { runId: "0199c1aa-0000-7000-8000-000000000001", fence: 41 };

const isRight = (changes: {
  readonly token?: string;
  readonly grant?: { readonly runId: string; readonly fence: number };
  readonly secrets?: readonly string[];
}) =>
  isCallbackToken({
    token: callbackToken(GRANT, SECRET),
    grant: GRANT,
    secrets: [SECRET],
    ...changes,
  });

test("a token is good for its run and fence", () => {
  expect(isRight({})).toBe(true);
  expect(isRight({ secrets: ["the-new-secret-of-ours", SECRET] })).toBe(true);
});

test.each([
  ["another run", { runId: "0199c1aa-0000-7000-8000-000000000002", fence: 41 }],
  ["a later fence", { runId: GRANT.runId, fence: 42 }],
  ["an earlier fence", { runId: GRANT.runId, fence: 40 }],
  ["a fence of zero", { runId: GRANT.runId, fence: 0 }],
  ["a negative fence", { runId: GRANT.runId, fence: -41 }],
  ["a fence beyond all numbers", { runId: GRANT.runId, fence: Number.POSITIVE_INFINITY }],
  ["a broken fence", { runId: GRANT.runId, fence: 41.5 }],
  ["a fence as text", { runId: GRANT.runId, fence: "41" as unknown as number }],
])("it is refused for %s", (_, grant) => {
  expect(isRight({ grant })).toBe(false);
});

test("a token with a fence that is not a number is refused", () => {
  const grant = { runId: GRANT.runId, fence: "41" as unknown as number };
  expect(isRight({ token: callbackToken(grant, SECRET), grant })).toBe(false);
});

test("a token says which fence it is for, and a changed fence makes it wrong", () => {
  const token = callbackToken(GRANT, SECRET);
  expect(token).toMatch(/^hfcb1_[0-9a-f]{64}$/);
  expect(fenceOfToken(token)).toBe(41);
  const raised = token.replace(/^(hfcb1_[0-9a-f]{15})./, "$1a");
  expect(fenceOfToken(raised)).toBe(42);
  expect(isRight({ token: raised, grant: { ...GRANT, fence: 42 } })).toBe(false);
  for (const none of ["", "hfcb1_", `hfcb1_${"0".repeat(64)}`, `hfcb1_${"f".repeat(64)}`])
    expect(fenceOfToken(none)).toBeNull();
});

test("a token of another target is refused: its worker knows another secret", () => {
  const token = callbackToken(GRANT, "the-secret-of-others");
  expect(isRight({ token })).toBe(false);
  expect(isRight({ secrets: [] })).toBe(false);
  expect(isRight({ token: callbackToken(GRANT, "\0"), secrets: [""] })).toBe(false);
});

test.each(["", "Bearer", "hfcb1_", `hfcb1_${"0".repeat(64)}`, "x".repeat(1_000_000)])(
  "what is no token is refused: %.20s",
  (token) => {
    expect(isRight({ token })).toBe(false);
  },
);

test("a token does not reveal the key that signs requests", () => {
  const direct = createHmac("sha256", SECRET).update(`${GRANT.runId}.${GRANT.fence}`).digest("hex");
  expect(callbackToken(GRANT, SECRET)).not.toContain(direct);
});

test("digests are compared whole, whichever byte differs", () => {
  const digest = Uint8Array.from({ length: 32 }, (_, at) => at);
  expect(isEqualDigest(digest, digest.slice())).toBe(true);
  for (let at = 0; at < 32; at++) {
    const other = digest.slice();
    other[at] = 255;
    expect(isEqualDigest(digest, other)).toBe(false);
  }
  expect(isEqualDigest(digest, digest.slice(0, 31))).toBe(false);
  expect(isEqualDigest(new Uint8Array(0), new Uint8Array(0))).toBe(false);
});
