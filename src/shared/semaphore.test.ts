// Turns: how many at a time, and in which order.

import { expect, test } from "vitest";
import { Semaphore } from "./semaphore.js";

const never = new AbortController().signal;

test("a limited number of callers have a permit at a time, the others wait in order", async () => {
  const turns = new Semaphore(2);
  const order: string[] = [];
  const give = new Map<string, () => void>();
  const take = (name: string) =>
    turns.take(never).then((back) => {
      order.push(name);
      if (back) give.set(name, back);
    });
  const all = ["a", "b", "c", "d", "e"].map(take);
  await Promise.all(all.slice(0, 2));
  expect(order).toEqual(["a", "b"]);
  expect(turns.waitingCount).toBe(3);
  give.get("b")?.();
  await all[2];
  give.get("a")?.();
  await all[3];
  expect(order).toEqual(["a", "b", "c", "d"]);
  expect(turns.takenCount).toBe(2);
});

test("a turn is given back once, however often its holder says so", async () => {
  const turns = new Semaphore(1);
  const back = await turns.take(never);
  const second = turns.take(never);
  back?.();
  back?.();
  await second;
  expect(turns.takenCount).toBe(1);
});

test("a caller that stops waiting is forgotten and takes no permit from the others", async () => {
  const turns = new Semaphore(1);
  const back = await turns.take(never);
  const impatient = new AbortController();
  const left = turns.take(impatient.signal);
  const patient = turns.take(never);
  impatient.abort();
  expect(await left).toBeNull();
  back?.();
  expect(await patient).not.toBeNull();
  expect(await turns.take(AbortSignal.abort())).toBeNull();
});
