// Tests which address counts as the caller's behind proxies, and which lists of proxies are refused.

import { expect, test } from "vitest";
import { readTrustedProxies } from "./origin.js";
import { requestOf } from "./request.js";

function callerOf(peer: string, forwarded: string | null, trusted: readonly string[]): string {
  const headers = forwarded === null ? {} : { "x-forwarded-for": forwarded };
  const request = requestOf(new Request("http://h/", { headers }));
  return readTrustedProxies(trusted, {}).callerOf(request, peer);
}

const PROXIES = ["10.0.0.0/8", "127.0.0.1", "2001:db8:1::/48"];

test.for([
  // Nobody is trusted.
  ["127.0.0.1", "198.51.100.7", [], "127.0.0.1"],
  ["unknown", "198.51.100.7", [], "unknown"],
  // The peer is no proxy.
  ["8.8.8.8", "198.51.100.7", PROXIES, "8.8.8.8"],
  ["11.0.0.1", "198.51.100.7", PROXIES, "11.0.0.1"],
  ["unknown", "198.51.100.7", PROXIES, "unknown"],
  // The last one that no proxy of ours is; the client itself wrote whatever comes before it.
  ["127.0.0.1", "198.51.100.7", PROXIES, "198.51.100.7"],
  ["::ffff:10.0.0.3", "1.1.1.1, 198.51.100.7", PROXIES, "198.51.100.7"],
  ["10.0.0.3", "1.1.1.1,198.51.100.7 , 10.1.2.3", PROXIES, "198.51.100.7"],
  ["2001:db8:1:ff::9", "2001:4860::5", PROXIES, "2001:4860::5"],
  ["2001:db8:2::9", "2001:4860::5", PROXIES, "2001:db8:2::9"],
  // Some proxies write ports.
  ["10.0.0.3", "198.51.100.7:4711", PROXIES, "198.51.100.7"],
  ["10.0.0.3", "[2001:4860::5]:4711", PROXIES, "2001:4860::5"],
  // Nothing that can be read: the last proxy itself.
  ["10.0.0.3", null, PROXIES, "10.0.0.3"],
  ["10.0.0.3", "", PROXIES, "10.0.0.3"],
  ["10.0.0.3", "198.51.100.7, unknown", PROXIES, "10.0.0.3"],
  ["10.0.0.3", "_hidden, 10.0.0.4", PROXIES, "10.0.0.4"],
  ["10.0.0.3", "10.0.0.5, 10.0.0.4", PROXIES, "10.0.0.5"],
] as const)(
  "a peer %s with X-Forwarded-For %s counts as …",
  ([peer, forwarded, trusted, caller]) => {
    expect(callerOf(peer, forwarded, trusted)).toBe(caller);
  },
);

test("the environment names proxies by comma, code wins over it, and nothing names none", () => {
  const read = (option: readonly string[] | undefined, text: string) =>
    readTrustedProxies(option, { HOLDFAST_TRUSTED_PROXIES: text }).count;
  expect(read(undefined, "10.0.0.1, 10.1.0.0/16")).toBe(2);
  expect(read(["10.0.0.1"], "10.0.0.1, 10.1.0.0/16")).toBe(1);
  expect(read([], "10.0.0.1")).toBe(0);
  expect(read(undefined, "")).toBe(0);
});

test.for([
  ["a name", ["proxy.example.com"]],
  ["a network of too many bits", ["10.0.0.0/33"]],
  ["no number of bits", ["10.0.0.0/"]],
  ["half a number of bits", ["10.0.0.0/8.5"]],
  ["everybody", ["0.0.0.0/0"]],
  ["a number of proxies", 1],
  ["a number in the list", [1]],
  ["more than anybody has", Array(101).fill("10.0.0.1")],
] as const)("%s is refused at the start", ([, trusted]) => {
  expect(() => readTrustedProxies(trusted as never, {})).toThrow(/trustedProxies: must be/);
});

test("a wrong variable is named by its name", () => {
  const read = () => readTrustedProxies(undefined, { HOLDFAST_TRUSTED_PROXIES: "nginx" });
  expect(read).toThrow(/^HOLDFAST_TRUSTED_PROXIES: must be/);
});
