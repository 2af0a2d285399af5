// What the shop's jobs do: they pretend. Each shows another way in which an attempt can end.

import { setTimeout as pause } from "node:timers/promises";
import { PermanentError, RetryLater } from "holdfast";

/** @typedef {import("holdfast").RunContext} RunContext */
/** @typedef {{ order: number }} Order */

/** Takes a while and completes. @param {Order} input @param {RunContext} ctx */
export async function resizePhoto({ order }, ctx) {
  await pause(100 + ((order * 373) % 800), null, { signal: ctx.signal });
  return { order, width: 1200 };
}

/** Fails now and then and recovers; a refused card never does. @param {Order} input @param {RunContext} ctx */
export async function chargeCard({ order }, ctx) {
  await pause(50 + ((order * 97) % 200), null, { signal: ctx.signal });
  if (order % 10 === 7) throw new PermanentError("the card was refused");
  if (order % 3 === 0 && ctx.attempt < 1 + (order % 2) + 1) {
    throw Object.assign(new Error("the bank hung up"), { code: "ECONNRESET" });
  }
  return { order, charged: 1900 };
}

/** Comes back later, without using up an attempt. @param {Order} input @param {RunContext} ctx */
export async function callCourier({ order }, ctx) {
  if (!asked.has(order)) {
    asked.add(order);
    ctx.log.info({ job: "call-courier" }, `no courier is free for order ${order}`);
    throw new RetryLater({ delay: "3s" });
  }
  return { order, courier: "on the way" };
}

/** @type {Set<number>} */
const asked = new Set();

/**
 * Runs for some seconds and tells how far it is. It obeys its signal: when the shop is closed
 * meanwhile, it is handed back and written by whoever opens next.
 * @param {{ upTo: number }} input
 * @param {RunContext} ctx
 */
export async function writeReport({ upTo }, ctx) {
  const pages = 5;
  for (let page = 1; page <= pages; page += 1) {
    await pause(1_000, null, { signal: ctx.signal });
    ctx.log.info({ job: "write-report" }, `page ${page} of ${pages}`);
  }
  return { upTo, pages };
}

/** Made by a schedule: it knows which tick it is for. @param {unknown} _ @param {RunContext} ctx */
export async function countTheTill(_, ctx) {
  ctx.log.info({ job: "count-the-till" }, `counted for ${ctx.nominalAt?.toISOString()}`);
  return { late: ctx.lateMs };
}

/** The next time is drawn when this one has ended. @param {unknown} _ @param {RunContext} ctx */
export async function waterThePlants(_, ctx) {
  await pause(2_000, null, { signal: ctx.signal });
}

export async function closeTheShop() {
  return { closed: true };
}
