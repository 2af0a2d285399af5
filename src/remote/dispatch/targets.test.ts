// Targets as they are configured: defaults, and everything that is refused.

import { describe, expect, test } from "vitest";
import { ConfigurationError } from "../../shared/errors.js";
import { readDispatch, refuseUnknownTarget, requirePublicUrl } from "./targets.js";

const SECRET = "a-secret-of-enough-letters";
const RIGHT = { url: "https://studies.example.com/run", secret: SECRET };

const read = (workers: unknown, publicUrl?: unknown) =>
  readDispatch({ workers, publicUrl, publicUrlField: "publicUrl" });

function problemsOf(take: () => unknown): string[] {
  try {
    take();
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message.split("\n");
    throw error;
  }
  return [];
}

test("a target has its defaults", () => {
  expect(read({ studies: RIGHT }).targets.get("studies")).toEqual({
    name: "studies",
    url: RIGHT.url,
    secrets: [SECRET],
    concurrency: 10,
    timeoutMs: 60_000,
    allowPrivateNetwork: false,
  });
  expect(read(undefined)).toEqual({ targets: new Map(), publicUrl: null });
});

test("every wrong value is named at once", () => {
  const problems = problemsOf(() =>
    read(
      {
        studies: { url: "ftp://x", secret: "", concurrency: 0, timeout: "soon", retries: 3 },
        mail: { ...RIGHT, allowPrivateNetwork: "yes" },
        fax: null,
      },
      "jobs.example.com",
    ),
  );
  expect(problems.map((problem) => problem.split(": ", 1)[0]).sort()).toEqual([
    "publicUrl",
    "workers.fax",
    "workers.mail.allowPrivateNetwork",
    "workers.studies.concurrency",
    "workers.studies.retries",
    "workers.studies.secret",
    "workers.studies.timeout",
    "workers.studies.url",
  ]);
});

describe("a secret", () => {
  test.each([
    ["empty", ""],
    ["left out", undefined],
    ["a list of nothing", []],
    ["empty beside a right one", [SECRET, ""]],
    ["short", "fifteen-letters"],
    ["surrounded by spaces", ` ${SECRET} `],
    ["a number", 1_234_567_890_123_456],
  ])("that is %s is refused, and never shown", (_, secret) => {
    const problems = problemsOf(() => read({ studies: { ...RIGHT, secret } }));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^workers\.studies\.secret: /);
    expect(problems[0]).not.toContain("letters");
  });

  test("may be two while one is replaced by the other", () => {
    const { targets } = read({ studies: { ...RIGHT, secret: ["the-new-secret-of-ours", SECRET] } });
    expect(targets.get("studies")?.secrets).toEqual(["the-new-secret-of-ours", SECRET]);
  });
});

describe("a URL", () => {
  test.each([
    "",
    "studies.example.com",
    "file:///etc/passwd",
    "http://user:password@studies.example.com",
    "http://studies.example.com:22",
    "http://studies.example.com/#part",
    "http://127.0.0.1:3000",
    "http://[::1]:3000",
    "http://169.254.169.254",
    42,
  ])("such as %s is refused", (url) => {
    expect(problemsOf(() => read({ studies: { ...RIGHT, url } }))).toEqual([
      expect.stringMatching(/^workers\.studies\.url: must be an address such as /),
    ]);
  });

  test("may lead inside where that is allowed", () => {
    const url = "http://127.0.0.1:3000";
    expect(
      problemsOf(() => read({ studies: { ...RIGHT, url, allowPrivateNetwork: true } })),
    ).toEqual([]);
  });
});

describe("the public URL", () => {
  test("is needed by what may send runs, and only there", () => {
    expect(problemsOf(() => requirePublicUrl(read({ studies: RIGHT })))).toEqual([
      expect.stringMatching(/^publicUrl: is needed with workers/),
    ]);
    requirePublicUrl(read({ studies: RIGHT }, "https://jobs.example.com"));
    requirePublicUrl(read(undefined));
  });

  test("is kept without a slash at its end", () => {
    expect(read(undefined, "https://jobs.example.com/hold/").publicUrl).toBe(
      "https://jobs.example.com/hold",
    );
  });

  test.each(["", "jobs.example.com", "ftp://x", "https://a:b@x.example", "https://x.example/?a=1"])(
    "is refused as %s",
    (publicUrl) => {
      expect(problemsOf(() => read(undefined, publicUrl))).toHaveLength(1);
    },
  );
});

test("a job is sent to a target that exists", () => {
  const config = read({ studies: RIGHT });
  refuseUnknownTarget({ name: "study", worker: "studies" }, config);
  refuseUnknownTarget({ name: "study", worker: null }, config);
  expect(
    problemsOf(() => refuseUnknownTarget({ name: "study", worker: "studied" }, config)),
  ).toEqual([expect.stringMatching(/^job\("study"\)\.worker: .*Did you mean studies\?$/)]);
});

test("names from the prototype of objects are no targets", () => {
  const { targets } = read({ studies: RIGHT });
  for (const worker of ["__proto__", "constructor", "toString"]) {
    expect(targets.has(worker)).toBe(false);
    expect(
      problemsOf(() => refuseUnknownTarget({ name: "x", worker }, { targets, publicUrl: null })),
    ).toHaveLength(1);
  }
});
