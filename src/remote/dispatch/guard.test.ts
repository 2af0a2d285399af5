// The guard of outgoing requests: where they may go, and what is known when they fail. Nothing leaves
// this process: names and connections are recorded.

import { describe, expect, test } from "vitest";
import {
  broken,
  RecordingNetwork,
  response,
  untilAborted,
} from "../../../test/support/recording-network.js";
import { VirtualClock } from "../../testing/virtual-clock.js";
import { type GuardedRequest, guardedFetch, judgeAddress, RESPONSE_BYTES_MAX } from "./guard.js";

const PUBLIC = "93.184.216.34";

function scene() {
  const clock = new VirtualClock();
  const network = new RecordingNetwork()
    .names("ok.example", [PUBLIC])
    .names("localhost.", ["127.0.0.1"])
    .names("localhost", ["::1", "127.0.0.1"])
    .names("metadata.google.internal", ["169.254.169.254"]);
  const fetch = (url: string, changes: Partial<GuardedRequest> = {}) =>
    guardedFetch({ url, method: "POST", timeoutMs: 5_000, ...changes }, { network, clock });
  return { clock, network, fetch };
}

describe("an address that leads inside is refused, however it is written", () => {
  test.each([
    "http://127.0.0.1",
    "http://localhost.",
    "http://localhost",
    "http://[::1]",
    "http://[::ffff:7f00:1]",
    "http://[::ffff:10.0.0.1]",
    "http://[64:ff9b::a00:1]",
    "http://[2002:7f00:1::]",
    "http://[::7f00:1]",
    "http://[fe80::1]",
    "http://[fc00::1]",
    "http://[ff02::1]",
    "http://[::]",
    "http://0",
    "http://127.1",
    "http://2130706433",
    "http://0x7f000001",
    "http://0177.0.0.1",
    "http://127。0。0。1",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]",
    "http://metadata.google.internal",
    "http://100.100.100.200",
    "http://10.0.0.1",
    "http://172.16.0.1",
    "http://172.31.255.255",
    "http://192.168.1.1",
    "http://100.64.0.1",
    "http://168.63.129.16",
    "http://198.18.0.1",
    "http://224.0.0.1",
    "http://255.255.255.255",
    "http://ok.example@127.0.0.1/",
  ])("%s", async (url) => {
    const { network, fetch } = scene();
    expect(await fetch(url)).toMatchObject({ kind: "refused" });
    expect(network.sent).toEqual([]);
  });

  test("a URL other than HTTP is refused before any lookup", async () => {
    const { network, fetch } = scene();
    for (const url of [
      "file:///etc/passwd",
      "gopher://ok.example/",
      "unix:/var/run/docker.sock",
      "ftp://ok.example/",
      "data:text/plain,x",
      "javascript:alert(1)",
      "http://",
      "http://ok.example:99999",
      "ok.example",
      "",
      "http://user:password@ok.example/",
      "http://user@ok.example/",
    ])
      expect(await fetch(url), url).toMatchObject({ kind: "refused" });
    expect(network.resolved).toEqual([]);
  });

  test("ports of other protocols are refused, wherever they are", async () => {
    const { network, fetch } = scene();
    for (const port of [22, 25, 5432, 3306, 6379, 11211, 27017, 2375])
      expect(await fetch(`http://ok.example:${port}`), String(port)).toMatchObject({
        kind: "refused",
      });
    expect(network.resolved).toEqual([]);
    for (const port of [80, 443, 3000, 4780, 8080, 8443])
      expect(await fetch(`http://ok.example:${port}`), String(port)).toMatchObject({
        kind: "answered",
      });
  });

  test("a fragment names no host: the request goes to the one before it", async () => {
    const { network, fetch } = scene();
    await fetch("http://ok.example#@10.0.0.1");
    expect(network.resolved).toEqual(["ok.example"]);
    expect(network.sent.map(({ address }) => address)).toEqual([PUBLIC]);
  });

  test("a line break in a path stays a part of the path", async () => {
    const { network, fetch } = scene();
    await fetch("http://ok.example/%0d%0aX-Evil:1");
    expect(network.sent[0]?.path).toBe("/%0d%0aX-Evil:1");
    expect(Object.keys(network.sent[0]?.headers ?? {})).toEqual(["accept-encoding", "host"]);
  });

  test("headers that break lines or frame the request are refused", async () => {
    const { network, fetch } = scene();
    for (const [name, value] of [
      ["x-evil", "a\r\nhost: other"],
      ["x evil", "a"],
      ["", "a"],
      ["host", "other.example"],
      ["Content-Length", "0"],
      ["Transfer-Encoding", "chunked"],
      ["x-text", "ünï"],
    ] as const)
      expect(await fetch("http://ok.example", { headers: { [name]: value } })).toMatchObject({
        kind: "refused",
      });
    expect(network.sent).toEqual([]);
  });
});

describe("a name", () => {
  test("that changes its address is connected to the checked one", async () => {
    const { network, fetch } = scene();
    network.names("7f000001.08080808.rbndr.us", ["8.8.8.8"], ["127.0.0.1"]);
    expect(await fetch("http://7f000001.08080808.rbndr.us")).toMatchObject({ kind: "answered" });
    expect(network.resolved).toHaveLength(1);
    expect(network.sent.map(({ address }) => address)).toEqual(["8.8.8.8"]);
    expect(await fetch("http://7f000001.08080808.rbndr.us")).toMatchObject({ kind: "refused" });
    expect(network.sent).toHaveLength(1);
  });

  test("is refused for one address that leads inside, whatever the others are", async () => {
    const { network, fetch } = scene();
    network.names("mixed.example", [PUBLIC, "10.0.0.7"]);
    const answer = await fetch("https://mixed.example");
    expect(answer).toMatchObject({ kind: "refused", reason: expect.stringContaining("10.0.0.7") });
    expect(network.sent).toEqual([]);
  });

  test("is proven by the certificate, although its address is connected to", async () => {
    const { network, fetch } = scene();
    await fetch("https://ok.example/run?a=1");
    await fetch("http://ok.example:8080/");
    expect(network.sent).toMatchObject([
      { address: PUBLIC, port: 443, tlsName: "ok.example", path: "/run?a=1" },
      { address: PUBLIC, port: 8080, tlsName: null, headers: { host: "ok.example:8080" } },
    ]);
  });

  test("with several addresses is tried at the next one only if nothing was sent", async () => {
    const { network, fetch } = scene();
    network.names("two.example", [PUBLIC, "93.184.216.35"]);
    network.answer = (request) => {
      if (request.address === PUBLIC) throw broken("ECONNREFUSED");
      request.onConnected();
      return response(200);
    };
    expect(await fetch("http://two.example")).toMatchObject({ kind: "answered", status: 200 });
    network.answer = (request) => {
      request.onConnected();
      throw broken("ECONNRESET");
    };
    expect(await fetch("http://two.example")).toEqual({ kind: "unknown", reason: "ECONNRESET" });
    expect(network.sent).toHaveLength(3);
  });
});

describe("allowPrivateNetwork", () => {
  const fetchPrivate = (url: string) => {
    const { network, fetch } = scene();
    network.names("worker.internal", ["10.0.0.7"]);
    return fetch(url, { allowPrivateNetwork: true });
  };

  test.each([
    "http://127.0.0.1:8080",
    "http://localhost",
    "http://[::1]",
    "http://worker.internal",
  ])("allows %s", async (url) => {
    expect(await fetchPrivate(url)).toMatchObject({ kind: "answered" });
  });

  test.each([
    "http://169.254.169.254/",
    "http://metadata.google.internal",
    "http://[fd00:ec2::254]",
    "http://[::ffff:169.254.169.254]",
    "http://100.100.100.200",
    "http://0",
    "http://224.0.0.1",
    "http://127.0.0.1:22",
    "file:///etc/passwd",
  ])("does not allow %s", async (url) => {
    expect(await fetchPrivate(url)).toMatchObject({ kind: "refused" });
  });
});

describe("an answer", () => {
  test("with a redirect is returned as it is: nothing is sent to its target", async () => {
    const { network, fetch } = scene();
    network.answer = (request) => {
      request.onConnected();
      return response(302, "", { location: "http://169.254.169.254/latest/meta-data/" });
    };
    const answer = await fetch("http://ok.example", { headers: { authorization: "Bearer x" } });
    expect(answer).toMatchObject({ kind: "answered", status: 302 });
    expect(network.sent).toHaveLength(1);
    expect(network.resolved).toEqual(["ok.example"]);
  });

  test("is read up to 1 MiB, and no coding is offered that could unpack to more", async () => {
    const { network, fetch } = scene();
    await fetch("http://ok.example");
    expect(network.sent[0]).toMatchObject({
      bytesMax: RESPONSE_BYTES_MAX,
      headers: { "accept-encoding": "identity" },
    });
  });
});

describe("a failure", () => {
  test("before there was a connection was certainly not delivered", async () => {
    const { network, fetch } = scene();
    expect(await fetch("http://nowhere.example")).toEqual({
      kind: "not_delivered",
      reason: "ENOTFOUND",
    });
    network.names("empty.example", []);
    expect(await fetch("http://empty.example")).toMatchObject({ kind: "not_delivered" });
    for (const code of ["ECONNREFUSED", "CERT_HAS_EXPIRED", "ERR_TLS_CERT_ALTNAME_INVALID"]) {
      network.answer = () => Promise.reject(broken(code));
      expect(await fetch("https://ok.example")).toEqual({ kind: "not_delivered", reason: code });
    }
  });

  test("while it took too long: by whether there was a connection", async () => {
    for (const isConnected of [false, true]) {
      const { clock, network, fetch } = scene();
      network.answer = (request) => {
        if (isConnected) request.onConnected();
        return untilAborted(request);
      };
      const answer = await clock.until(fetch("http://ok.example", { timeoutMs: 5_000 }));
      expect(answer).toEqual({
        kind: isConnected ? "unknown" : "not_delivered",
        reason: "no response within 5000 ms",
      });
    }
  });

  test("in a lookup without end is not waited for either", async () => {
    const { clock, network, fetch } = scene();
    network.resolve = () => new Promise(() => undefined);
    expect(await clock.until(fetch("http://ok.example"))).toMatchObject({ kind: "not_delivered" });
  });

  test("since its caller gave up, at once, also where it had given up before", async () => {
    const { network, fetch } = scene();
    const end = new AbortController();
    network.answer = (request) => {
      request.onConnected();
      queueMicrotask(() => end.abort(new Error("stop")));
      return untilAborted(request);
    };
    const changes = { signal: end.signal };
    expect(await fetch("http://ok.example", changes)).toMatchObject({ kind: "unknown" });
    expect(await fetch("http://ok.example", changes)).toMatchObject({ kind: "not_delivered" });
    expect(network.sent).toHaveLength(1);
  });

  test("is reported by its code, never by a text that may repeat what was sent", async () => {
    const { network, fetch } = scene();
    network.answer = () => Promise.reject(new Error("bad header: Bearer canary"));
    expect(JSON.stringify(await fetch("http://ok.example"))).not.toContain("canary");
  });
});

describe("an address", () => {
  test.each([
    ["8.8.8.8", "public"],
    ["2606:4700:4700::1111", "public"],
    ["::ffff:8.8.8.8", "public"],
    ["64:ff9b::808:808", "public"],
    ["172.15.255.255", "public"],
    ["172.32.0.0", "public"],
    ["100.63.255.255", "public"],
    ["100.128.0.0", "public"],
    ["fe80::1%eth0", "private"],
    ["2001:0:1::1", "forbidden"],
    ["2001:db8::1", "forbidden"],
    ["4000::1", "forbidden"],
    ["1.2.3", "forbidden"],
    ["01.2.3.4", "forbidden"],
    ["256.1.1.1", "forbidden"],
    ["1::2::3", "forbidden"],
    ["1:2:3:4:5:6:7:8:9", "forbidden"],
    ["g::1", "forbidden"],
    ["localhost", "forbidden"],
    ["", "forbidden"],
  ])("%s is %s", (address, kind) => {
    expect(judgeAddress(address).kind).toBe(kind);
  });
});
