// Signatures of dispatches: what is signed, what is refused, replays.

import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { signDispatch, TOLERANCE_MS, verifyDispatch } from "./signature.js";

const NOW = Date.UTC(2026, 0, 15, 12);
const SECRET = "a-secret-of-enough-letters";
const BODY = '{"runId":"1", "ümlaut": "✓"}';

const signed = (changes: Partial<Parameters<typeof signDispatch>[0]> = {}) =>
  signDispatch({ id: "run-7", body: BODY, secrets: [SECRET], nowMs: NOW, ...changes });

describe("signing", () => {
  test("the signature is the HMAC-SHA256 of id.timestamp.body, as any library computes it", () => {
    const headers = signed();
    const timestamp = String(NOW / 1_000);
    const digest = createHmac("sha256", SECRET).update(`run-7.${timestamp}.${BODY}`).digest("hex");
    expect(headers).toEqual({
      "holdfast-id": "run-7",
      "holdfast-timestamp": timestamp,
      "holdfast-signature": `v1=${digest}`,
    });
  });

  test("while a secret rotates there is a signature by each, the newest first", () => {
    const headers = signed({ secrets: ["the-new-secret-of-ours", SECRET] });
    const alone = signed();
    expect(headers["holdfast-signature"].split(",")).toHaveLength(2);
    expect(headers["holdfast-signature"].split(",")[1]).toBe(alone["holdfast-signature"]);
  });
});

describe("verifying", () => {
  const verify = (
    changes: Partial<Parameters<typeof verifyDispatch>[0]> = {},
    headers?: Record<string, string>,
  ) =>
    verifyDispatch({
      headers: { ...signed(), ...headers },
      body: BODY,
      secrets: SECRET,
      nowMs: NOW,
      ...changes,
    });

  test("a request as it was sent is right, whichever way headers and body are held", () => {
    const right = { ok: true, id: "run-7", sentAt: new Date(NOW) };
    expect(verify()).toEqual(right);
    expect(verify({ headers: new Headers(signed()) })).toEqual(right);
    expect(verify({ body: new TextEncoder().encode(BODY) })).toEqual(right);
  });

  test.each([
    ["5 minutes old", -TOLERANCE_MS, true],
    ["5 minutes ahead", TOLERANCE_MS, true],
    ["5 minutes and a second old", -TOLERANCE_MS - 1_000, false],
    ["6 minutes ahead", 6 * 60_000, false],
  ])("a request that is %s", (_, offMs, ok) => {
    const headers = signed({ nowMs: NOW + offMs });
    const verified = verify({ headers });
    expect(verified).toMatchObject(ok ? { ok } : { ok, reason: "expired" });
  });

  test("a signature under the old or under the new secret is right while one rotates", () => {
    const rotated = signed({ secrets: ["the-new-secret-of-ours", SECRET] });
    expect(verify({ headers: rotated }).ok).toBe(true);
    expect(verify({ headers: rotated, secrets: "the-new-secret-of-ours" }).ok).toBe(true);
    expect(verify({ secrets: ["the-new-secret-of-ours", SECRET] }).ok).toBe(true);
    expect(verify({ secrets: ["the-new-secret-of-ours"] }).ok).toBe(false);
  });

  test("JSON that was parsed and written again is another body", () => {
    const again = JSON.stringify(JSON.parse(BODY));
    expect(verify({ body: again })).toEqual({ ok: false, reason: "signature_wrong" });
  });

  test.each([
    ["a changed body", { body: `${BODY} ` }, {}],
    ["another id", {}, { "holdfast-id": "run-8" }],
    ["another time within the window", {}, { "holdfast-timestamp": String(NOW / 1_000 + 1) }],
    ["another secret", { secrets: "another-secret-altogether" }, {}],
    ["no secret at all", { secrets: [] }, {}],
    ["an empty secret", { secrets: [""] }, {}],
  ])("%s is refused", (_, changes, headers) => {
    const verified = verify(changes, headers);
    expect(verified).toEqual({ ok: false, reason: "signature_wrong" });
  });

  test("a signature under an empty secret is refused, even if the receiver's secret is empty", () => {
    const forged = signed({ secrets: ["\0"] });
    expect(verify({ headers: forged, secrets: "" }).ok).toBe(false);
  });

  test.each([
    ["no signature", "holdfast-signature", "", "headers_missing"],
    ["no id", "holdfast-id", "", "headers_missing"],
    ["no time", "holdfast-timestamp", "", "headers_missing"],
    ["a short digest", "holdfast-signature", "v1=abc", "headers_malformed"],
    ["an unknown version alone", "holdfast-signature", `v9=${"0".repeat(64)}`, "headers_malformed"],
    ["no version", "holdfast-signature", "0".repeat(64), "headers_malformed"],
    ["eleven", "holdfast-signature", `v1=${"0".repeat(64)},`.repeat(11), "headers_malformed"],
    ["a megabyte", "holdfast-signature", "v1=".repeat(350_000), "headers_missing"],
    ["an id with a dot", "holdfast-id", "run.7", "headers_malformed"],
    ["a time with a sign", "holdfast-timestamp", "-1", "headers_malformed"],
    ["a time in words", "holdfast-timestamp", "1e9", "headers_malformed"],
    ["a time beyond all", "holdfast-timestamp", "9".repeat(400), "headers_malformed"],
  ])("%s is refused, and nothing throws", (_, name, value, reason) => {
    expect(verify({}, { [name]: value })).toEqual({ ok: false, reason });
  });

  test("a header that came twice is none", () => {
    const headers = { ...signed(), "holdfast-id": ["run-7", "run-8"] };
    expect(verify({ headers })).toEqual({ ok: false, reason: "headers_missing" });
  });

  test("a signature of a version to come is looked past", () => {
    const headers = signed();
    const both = `v2=whatever,${headers["holdfast-signature"]}`;
    expect(verify({}, { "holdfast-signature": both }).ok).toBe(true);
  });
});
