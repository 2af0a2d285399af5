// One attempt sent to a target: what the worker gets, and what each of its answers means.

import { describe, expect, test } from "vitest";
import {
  broken,
  RecordingNetwork,
  response,
  untilAborted,
} from "../../../test/support/recording-network.js";
import type { PinnedResponse } from "../../shared/ports.js";
import { VirtualClock } from "../../testing/virtual-clock.js";
import { OPEN_MS, OPENS_AFTER } from "./breaker.js";
import { Dispatcher, type DispatcherParams } from "./dispatcher.js";
import { isCallbackToken, verifyDispatch } from "./signature.js";
import { readDispatch, type WorkerTargetOptions } from "./targets.js";

const SECRET = "a-secret-of-enough-letters";
const RUN = {
  id: "0199c1aa-0000-7000-8000-000000000001",
  fence: 41,
  attempt: 2,
  job: "market-study",
  input: { study: 7, name: "Ünï" },
  idempotencyKey: "0199c1aa-0000-7000-8000-000000000001",
  leaseMs: 30_000,
  timeoutMs: 7_200_000,
  mode: "enqueued" as const,
  nominalAt: null,
  tags: ["night"],
  steps: [],
  waits: [],
  hasMoreSteps: false,
};

function scene(changes: Partial<WorkerTargetOptions> = {}) {
  const clock = new VirtualClock();
  const network = new RecordingNetwork().names("studies.example.com", ["93.184.216.34"]);
  const circuits: Parameters<DispatcherParams["onCircuit"]>[0][] = [];
  const dispatcher = new Dispatcher({
    ...readDispatch({
      workers: {
        studies: { url: "https://studies.example.com/run", secret: SECRET, ...changes },
      },
      publicUrl: "https://jobs.example.com/hold/",
      publicUrlField: "publicUrl",
    }),
    clock,
    network,
    onCircuit: (change) => void circuits.push(change),
  });
  const dispatch = (run = RUN, signal = new AbortController().signal) =>
    dispatcher.dispatch({ target: "studies", run, signal });
  const answers = (answer: PinnedResponse) => {
    network.answer = (request) => {
      request.onConnected();
      return answer;
    };
  };
  return { clock, network, dispatcher, dispatch, answers, circuits };
}

describe("the request to a worker", () => {
  test("is one POST with the run, where to call back, and a token for that", async () => {
    const { network, dispatch } = scene();
    await dispatch();
    expect(network.sent).toHaveLength(1);
    const body = JSON.parse(new TextDecoder().decode(network.sent[0]?.body));
    const base = `https://jobs.example.com/hold/api/runs/${RUN.id}`;
    expect(body).toEqual({
      runId: RUN.id,
      fence: 41,
      attempt: 2,
      job: "market-study",
      input: { study: 7, name: "Ünï" },
      idempotencyKey: RUN.id,
      leaseMs: 30_000,
      timeoutMs: 7_200_000,
      mode: "enqueued",
      nominalAt: null,
      tags: ["night"],
      steps: [],
      waits: [],
      hasMoreSteps: false,
      callbacks: {
        heartbeat: `${base}/heartbeat`,
        progress: `${base}/progress`,
        items: `${base}/items`,
        logs: `${base}/logs`,
        steps: `${base}/steps`,
        wait: `${base}/wait`,
        complete: `${base}/complete`,
        fail: `${base}/fail`,
      },
      token: expect.stringMatching(/^hfcb1_[0-9a-f]{64}$/),
    });
    const grant = { runId: RUN.id, fence: 41 };
    expect(isCallbackToken({ token: body.token, grant, secrets: [SECRET] })).toBe(true);
  });

  test("is signed over its raw body, by each secret while one rotates", async () => {
    const { clock, network, dispatch } = scene({ secret: ["the-new-secret-of-ours", SECRET] });
    await dispatch();
    const { headers = {}, body = "" } = network.sent[0] ?? {};
    for (const secrets of ["the-new-secret-of-ours", SECRET]) {
      const verified = verifyDispatch({ headers, body, secrets, nowMs: clock.wallMs() });
      expect(verified).toMatchObject({ ok: true, id: `${RUN.id}-41` });
    }
    expect(JSON.stringify(network.sent)).not.toContain(SECRET);
  });
});

describe("an answer", () => {
  test.each([
    ["200 with JSON", response(200, '{"found": 3}'), { kind: "completed", result: '{"found":3}' }],
    ["200 with nothing", response(200, ""), { kind: "completed", result: "null" }],
    ["202", response(202, "on it"), { kind: "accepted" }],
    [
      "200 with a page",
      response(200, "<html>"),
      {
        kind: "failed",
        isPermanent: true,
        error: { code: "ANSWER_NOT_JSON" },
        reply: { status: 200, text: "<html>" },
      },
    ],
    ["204", response(204), { kind: "failed", isPermanent: true, error: { code: "HTTP_204" } }],
    [
      "302",
      response(302, "", { location: "http://169.254.169.254/" }),
      { kind: "failed", isPermanent: true, error: { code: "HTTP_302" } },
    ],
    [
      "422",
      response(422, "no such study"),
      {
        kind: "failed",
        isPermanent: true,
        error: { code: "HTTP_422", message: expect.stringContaining("no such study") },
        reply: { status: 422, text: "no such study" },
      },
    ],
    [
      "500 with a secret",
      response(500, '{"why":"broken","api_key":"CANARY"}'),
      {
        kind: "failed",
        isPermanent: false,
        error: {
          message: 'The worker answered with status 500: {"why":"broken","api_key":"***"}',
        },
      },
    ],
    ["401", response(401), { kind: "failed", isPermanent: true }],
    ["408", response(408), { kind: "failed", isPermanent: false }],
    ["425", response(425), { kind: "failed", isPermanent: false }],
    [
      "429 with Retry-After",
      response(429, "", { "retry-after": "90" }),
      { kind: "failed", isPermanent: false, retryAfterMs: 90_000 },
    ],
    ["500", response(500), { kind: "failed", isPermanent: false, error: { code: "HTTP_500" } }],
    [
      "503 with a date",
      response(503, "", {
        date: "Thu, 15 Jan 2026 12:00:00 GMT",
        "retry-after": "Thu, 15 Jan 2026 12:01:00 GMT",
      }),
      { kind: "failed", isPermanent: false, retryAfterMs: 60_000 },
    ],
  ])("of %s", async (_, answer, expected) => {
    const { answers, dispatch, network } = scene();
    answers(answer);
    expect(await dispatch()).toMatchObject(expected);
    expect(network.sent).toHaveLength(1);
  });

  test("that is longer than 1 MiB completes the run with a mark in place of its result", async () => {
    const { answers, dispatch } = scene();
    answers({ ...response(200, `"${"x".repeat(2_000)}`), isCut: true });
    const answer = await dispatch();
    expect(answer.kind).toBe("completed");
    const result = answer.kind === "completed" ? JSON.parse(answer.result) : null;
    expect(result).toMatchObject({ $truncated: true, preview: expect.stringMatching(/^"x+/) });
  });

  test("with a NUL, half a character or ten megabytes of words is stored as text that fits", async () => {
    const { answers, dispatch } = scene();
    answers(response(400, `\0\ud800${"y".repeat(1_000_000)}`));
    const answer = await dispatch();
    const message = answer.kind === "failed" ? answer.error.message : "";
    expect(message).not.toContain("\0");
    expect(message.length).toBeLessThan(9_000);
  });

  test("that does not arrive on an open connection is unknown, and the request is sent once", async () => {
    const { clock, network, dispatch } = scene({ timeout: "3s" });
    network.answer = (request) => {
      request.onConnected();
      return untilAborted(request);
    };
    const answer = await clock.until(dispatch());
    expect(answer).toEqual({ kind: "unknown", reason: "no response within 3000 ms" });
    expect(network.sent).toHaveLength(1);
  });
});

describe("a run that cannot be delivered", () => {
  test("is said with when it is worth another try", async () => {
    const { network, dispatch } = scene();
    network.answer = () => Promise.reject(broken("ECONNREFUSED"));
    expect(await dispatch()).toEqual({
      kind: "not_delivered",
      reason: "ECONNREFUSED",
      pauseMs: 1_000,
    });
    expect(await dispatch()).toMatchObject({ pauseMs: 2_000 });
  });

  test("since the name leads inside fails for good, with words on what to change", async () => {
    const { network, dispatch, dispatcher } = scene();
    network.names("studies.example.com", ["10.0.0.7"]);
    for (let each = 0; each < OPENS_AFTER + 1; each++)
      expect(await dispatch()).toMatchObject({
        kind: "failed",
        isPermanent: true,
        error: { code: "TARGET_REFUSED", message: expect.stringContaining("allowPrivateNetwork") },
      });
    expect(network.sent).toEqual([]);
    expect(dispatcher.room("studies")).toBe(Number.POSITIVE_INFINITY);
  });

  test("opens the circuit after some; then nothing is sent until one probe is due", async () => {
    const { clock, network, dispatch, dispatcher, answers, circuits } = scene();
    network.answer = () => Promise.reject(broken("ECONNREFUSED"));
    for (let each = 0; each < OPENS_AFTER; each++) await dispatch();
    expect(circuits).toEqual([{ target: "studies", isOpen: true, reason: "ECONNREFUSED" }]);
    expect(dispatcher.room("studies")).toBe(0);
    expect(await dispatch()).toMatchObject({ kind: "not_delivered", pauseMs: OPEN_MS });
    expect(network.sent).toHaveLength(OPENS_AFTER);
    await clock.advance(OPEN_MS);
    expect(dispatcher.room("studies")).toBe(1);
    answers(response(200, "1"));
    const [probe, second] = await Promise.all([dispatch(), dispatch()]);
    expect(probe).toMatchObject({ kind: "completed" });
    expect(second).toMatchObject({ kind: "not_delivered" });
    expect(circuits.at(-1)).toEqual({ target: "studies", isOpen: false, reason: "status 200" });
    expect(await dispatch()).toMatchObject({ kind: "completed" });
  });

  test.each([502, 503, 504])(
    "status %i opens it too: the target says so itself",
    async (status) => {
      const { answers, dispatch, dispatcher } = scene();
      answers(response(status));
      for (let each = 0; each < OPENS_AFTER; each++) await dispatch();
      expect(dispatcher.room("studies")).toBe(0);
    },
  );

  test.each([500, 429, 400])(
    "status %i does not: one bad run must not stop the rest",
    async (status) => {
      const { answers, dispatch, dispatcher } = scene();
      answers(response(status));
      for (let each = 0; each < OPENS_AFTER * 2; each++) await dispatch();
      expect(dispatcher.room("studies")).toBe(Number.POSITIVE_INFINITY);
    },
  );

  test("a cancelled run shows nothing about its target, not even as the probe", async () => {
    const { clock, network, dispatch, dispatcher } = scene();
    network.answer = () => Promise.reject(broken("ECONNREFUSED"));
    for (let each = 0; each < OPENS_AFTER; each++) await dispatch();
    await clock.advance(OPEN_MS);
    const end = new AbortController();
    network.answer = (request) => {
      request.onConnected();
      queueMicrotask(() => end.abort(new Error("cancelled")));
      return untilAborted(request);
    };
    expect(await dispatch(RUN, end.signal)).toMatchObject({ kind: "unknown" });
    expect(dispatcher.room("studies")).toBe(1);
  });
});

test("as many requests are open at a time as the target allows, the others wait their turn", async () => {
  const { network, dispatch } = scene({ concurrency: 2 });
  const open: (() => void)[] = [];
  network.answer = (request) => {
    request.onConnected();
    return new Promise((resolve) => open.push(() => resolve(response(200, "1"))));
  };
  const clockless = new AbortController();
  const all = [1, 2, 3].map((fence) => dispatch({ ...RUN, fence }));
  const impatient = dispatch({ ...RUN, fence: 4 }, clockless.signal);
  await expect.poll(() => network.sent.length).toBe(2);
  clockless.abort();
  expect(await impatient).toMatchObject({ kind: "not_delivered", pauseMs: 0 });
  open.shift()?.();
  await all[0];
  await expect.poll(() => network.sent.length).toBe(3);
  for (const answer of open) answer();
  await Promise.all(all);
});
