// Secrets that the process knows by value, and callback tokens, leave through no text that is stored or logged.

import { expect, test } from "vitest";
import { keptFields, keptMessage } from "../runs/rules/run-logs.js";
import { describeFailure, storedError } from "./failure.js";
import { encodeInput, encodeResult, storableText } from "./json.js";
import { hideSecrets, hideSecretsIn, rememberSecrets } from "./known-secrets.js";
import { redactBody, redactText } from "./redact.js";

const SECRET = 'a "quoted" secret/of 24+';
const TOKEN = `hfcb1_${"0a".repeat(32)}`;
const KEY = `hfk1_${"0b".repeat(32)}`;
rememberSecrets([SECRET, "short"]);

const WAYS: Readonly<Record<string, (text: string) => string>> = {
  "the message of an error": (text) => describeFailure(new Error(text)).message,
  "the stack of an error": (text) => describeFailure(new Error(text)).stack ?? "",
  "the cause of an error": (text) => describeFailure(new Error("x", { cause: text })).message,
  "an error that nobody threw": (text) =>
    storedError({ code: "X", name: "X", message: text }).message,
  "a result": (text) => encodeResult({ deep: [{ text }] }),
  "a line that is kept": (text) => keptMessage(text),
  "the fields of a line that is kept": (text) => keptFields({ deep: { text } }) ?? "",
  "any stored text": (text) => storableText(text, 1_000),
  "a log line": (text) => redactText(text),
  "the body of an answer": (text) => redactBody(JSON.stringify({ text }), 1_000),
  "the fields of an event": (text) => hideSecretsIn({ note: text }).note,
};

test.each(Object.entries(WAYS))(
  "%s shows neither a known secret nor a callback token, nor the secret of a named key",
  (_, through) => {
    const shown = through(
      `before ${SECRET} between ${TOKEN}, ${encodeURIComponent(SECRET)} and ${KEY} after`,
    );
    expect(shown).toMatch(/before \*\*\* between \*\*\*, \*\*\* and \*\*\* after/);
  },
);

test("a text that is cut in the middle of a secret shows no part of it", () => {
  const shown = storableText(`${"x".repeat(80)}${SECRET}${"x".repeat(500)}`, 110);
  expect(shown).not.toContain("quoted");
  expect(shown).toHaveLength(110);
});

test("words that are too short to be secrets are left alone, and inputs are never changed", () => {
  expect(hideSecrets("a short word")).toBe("a short word");
  expect(encodeInput({ text: SECRET })).toBe(JSON.stringify({ text: SECRET }));
});

test("an endless number of secrets does not grow the list without end", () => {
  rememberSecrets(Array.from({ length: 2_000 }, (_, at) => `one-of-many-secrets-${at}`));
  expect(hideSecrets("one-of-many-secrets-1999")).toBe("***");
  expect(hideSecrets("one-of-many-secrets-0")).not.toBe("***");
});
