// Runs the child's side of measurements of schedules: one process creates and fires them, another one watches.

import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";

/** Between two polls of one poller. */
const POLL_PAUSE_MS = 100;

const stamp = () => Number(process.hrtime.bigint()) / 1e6;

/** @param {import("./contestants.mjs").Contestant} contestant */
export function scheduleActions(contestant) {
  let place;
  let cpuFrom = process.cpuUsage();
  let statements = 0;

  return {
    async openSchedules({ isCounting, ...params }) {
      if (isCounting) await countStatements(() => statements++);
      const { open } = await import(`./${contestant.schedules.file}`);
      place = await open(params);
    },

    async seedSchedules(params) {
      await place.seed(params);
    },

    async seedForgotten(params) {
      await place.seedForgotten(params);
    },

    async startSchedules() {
      await place.start();
    },

    /** How late the fires of one batch were, once all of them are there. */
    async watchFires({ patienceMs, ...params }) {
      const endAt = stamp() + patienceMs;
      const until = async (isDone, everyMs) => {
        while (!(await isDone())) {
          if (stamp() > endAt)
            throw new Error(`Not all fires were there after ${Math.round(patienceMs / 1000)} s.`);
          await pause(everyMs);
        }
      };
      const late = await place.watch({ ...params, until });
      if (late.length !== params.count)
        throw new Error(`${late.length} fires instead of ${params.count}.`);
      late.sort((a, b) => a - b);
      const at = (share) => late[Math.min(late.length - 1, Math.floor(late.length * share))];
      return { first: late[0], p50: at(0.5), p99: at(0.99), last: late.at(-1) };
    },

    /** Starts, and reads every few milliseconds until the schedule's next tick lies ahead. */
    async catchUp({ label, patienceMs }) {
      const begin = stamp();
      await place.start();
      const startMs = stamp() - begin;
      for (;;) {
        const nextMs = await place.standing({ label });
        const ms = stamp() - begin;
        if (nextMs !== null && nextMs > Date.now()) return { ms, startMs };
        if (ms > patienceMs) throw new Error(`Not in cadence after ${patienceMs} ms.`);
        await pause(2);
      }
    },

    /**
     * So many pollers, each at its own pace, of schedules that are due every second; for every poll that won something,
     * how long it took and how much it won.
     */
    async pollFor({ url, schedules, pollers, warmMs, ms }) {
      const { open } = await import(`./${contestant.polling}`);
      const { polls, close } = await open({ url, schedules, pollers });
      const begin = stamp() + warmMs;
      const end = begin + ms;
      const won = [];
      await Promise.all(
        polls.map(async (poll) => {
          for (;;) {
            await pause(POLL_PAUSE_MS * (0.5 + Math.random()));
            const sentAt = stamp();
            if (sentAt >= end) return;
            const count = await poll();
            if (sentAt >= begin && count > 0) won.push([stamp() - sentAt, count]);
          }
        }),
      );
      await close();
      return won;
    },

    /** From here on CPU time and statements are counted. */
    async markCost() {
      cpuFrom = process.cpuUsage();
      statements = 0;
    },

    async cost() {
      const { user, system } = process.cpuUsage(cpuFrom);
      return { cpuMs: (user + system) / 1000, statements };
    },

    async pollStatement() {
      return place.pollStatement();
    },

    async closeSchedules() {
      await place.close();
    },
  };
}

/** Counts every statement that Holdfast sends, at the driver that it loads. */
async function countStatements(onStatement) {
  const require = createRequire(new URL("../dist/index.js", import.meta.url));
  const { Client } = require("pg");
  const { query } = Client.prototype;
  Client.prototype.query = function (...params) {
    onStatement();
    return query.apply(this, params);
  };
}
