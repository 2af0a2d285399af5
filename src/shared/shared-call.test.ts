// Tests SharedCall: who shares a call, and what a failed one does.

import { expect, test } from "vitest";
import { SharedCall } from "./shared-call.js";

function held() {
  const ends: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];
  const params: string[] = [];
  const shared = new SharedCall((each: string) => {
    params.push(each);
    return new Promise<string>((resolve, reject) => ends.push({ resolve, reject }));
  });
  return { shared, ends, params };
}

test("callers that arrive while a call is under way share the next one", async () => {
  const { shared, ends, params } = held();
  const first = shared.run("a");
  const later = [shared.run("b"), shared.run("c")];
  expect(params).toEqual(["a"]);
  ends[0]?.resolve("one");
  expect(await first).toBe("one");
  expect(params).toEqual(["a", "c"]);
  ends[1]?.resolve("two");
  expect(await Promise.all(later)).toEqual(["two", "two"]);
  void shared.run("d");
  expect(params).toEqual(["a", "c", "d"]);
});

test("a call that fails fails its own callers only", async () => {
  const { shared, ends } = held();
  const first = shared.run("a");
  const next = shared.run("b");
  ends[0]?.reject(new Error("the database is gone"));
  await expect(first).rejects.toThrow("the database is gone");
  ends[1]?.resolve("back");
  expect(await next).toBe("back");
});
