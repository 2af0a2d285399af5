// No password leaves through an address.

import fc from "fast-check";
import { expect, test } from "vitest";
import { redactBody, redactMember, redactText, redactUrl } from "./redact.js";

test.each([
  ["postgres://app:pw@db:5432/main", "postgres://app:***@db:5432/main"],
  ["postgres://app:p@ss:w/rd@db/main", "postgres://app:***@db/main"],
  ["postgres://:pw@db/main", "postgres://:***@db/main"],
  ["postgres://app@db/main", "postgres://app@db/main"],
  ["postgres://db/main", "postgres://db/main"],
  [
    "postgres://db/main?password=pw&sslmode=require",
    "postgres://db/main?password=***&sslmode=require",
  ],
  ["libsql://x.turso.io?authToken=ey.J.x", "libsql://x.turso.io?authToken=***"],
  ["host=db user=app password='p w' dbname=main", "host=db user=app password=*** dbname=main"],
  ["sqlite:.holdfast/holdfast.db", "sqlite:.holdfast/holdfast.db"],
  ["postgres//app:pw@db/main", "postgres//***@db/main"],
  ["postgres:/app:pw@db/main", "postgres:/***@db/main"],
  ["postgres:app:pw@db/main", "postgres:***@db/main"],
  ["app:pw@db/main", "***@db/main"],
  ["postgres://app%3Apw@db/main", "postgres://***@db/main"],
  // The host is missing: the password stands where its port would.
  ["postgres://app:pw", "postgres://app:***"],
  ["postgres://app:pw/main", "postgres://app:***"],
  ["postgres://app:pw:5432/main", "postgres://app:***"],
  ["postgres://app:4711pw/main?x=1", "postgres://app:***"],
  ["postgresql:app:pw", "postgresql:app:***"],
  ["mysql://app:p w", "mysql://app:***"],
  ["postgres://db:5432/main", "postgres://db:5432/main"],
  ["postgres://db:5432,other:5433/main", "postgres://db:5432,other:5433/main"],
  ["postgres://[::1]:5432/main", "postgres://[::1]:5432/main"],
  ["postgres:///main?host=/run/postgresql", "postgres:///main?host=/run/postgresql"],
  ["sqlite:///C:/data/app.db", "sqlite:///C:/data/app.db"],
  ["sqlite:C:/data/app.db", "sqlite:C:/data/app.db"],
  ["", ""],
])("%s is shown as %s", (url, shown) => {
  expect(redactUrl(url)).toBe(shown);
});

test("no password is shown, whatever its characters are", () => {
  fc.assert(
    fc.property(fc.string(), (noise) => {
      const shown = redactUrl(`postgres://app:CANARY${noise}CANARY@db:5432/main`);
      expect(shown).not.toContain("CANARY");
      expect(shown).toContain("@db:5432/main");
    }),
  );
});

test.for([
  [
    "connect to postgres://app:s3cret@db:5432/main failed",
    "connect to postgres://app:***@db:5432/main failed",
  ],
  ["sent Authorization: Bearer eyJhbGciOi.abc", "sent Authorization: Bearer ***"],
  ["GET /x?token=abcdef&page=2 was refused", "GET /x?token=***&page=2 was refused"],
  ["https://user:p@ss/w0rd@host/x and more", "https://user:***@host/x and more"],
  ["cannot read postgres//app:s3cret@db", "cannot read postgres//***@db"],
  ["cannot read postgres:/app:s3cret@db", "cannot read postgres:/***@db"],
  ["nothing to hide: write to ada@example.com", "nothing to hide: write to ada@example.com"],
  ["nothing to hide: 12:30 at https://host/x", "nothing to hide: 12:30 at https://host/x"],
])("the text %j shows as %j", ([text, shown]) => {
  expect(redactText(text as string)).toBe(shown);
});

test("members named as secrets are hidden, others are not", () => {
  const fields = {
    password: "a",
    apiKey: "b",
    Authorization: "c",
    tokens: 3,
    user: "ada",
    token: null,
  };
  expect(JSON.parse(JSON.stringify({ fields }, redactMember))).toEqual({
    fields: {
      password: "***",
      apiKey: "***",
      Authorization: "***",
      tokens: 3,
      user: "ada",
      token: null,
    },
  });
});

test.for([
  ['{"token":"abc","found":3}', '{"token":"***","found":3}'],
  ['{"credentials":{"user":"ada","key":"k"},"ok":true}', '{"credentials":"***","ok":true}'],
  ['{"password": "p\\"w", "found": [1, 2', '{"password": "***", "found": [1, 2'],
  ['{"page": 2, "api_key": "half of a ke', '{"page": 2, "api_key": "***"'],
  ["overloaded; ask https://ada:pw@host/x", "overloaded; ask https://ada:***@host/x"],
  ["", ""],
])("of the body %j is shown %j", ([body, shown]) => {
  expect(redactBody(body as string, 200)).toBe(shown);
});

test("a long body shows its beginning, in a time that grows with its length", () => {
  expect(redactBody("x".repeat(500), 10)).toBe("xxxxxxxxxx…");
  expect(redactBody("a://a:".repeat(200_000), 10)).toBe("a://a:a://…");
});
