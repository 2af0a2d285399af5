// Instances and their announcements.

import { expect } from "vitest";
import type { JobAnnouncement } from "../../src/store/jobs.js";
import { POLICY, policyWith, type SceneTest } from "./scene.js";

const STUDY: JobAnnouncement = {
  name: "study",
  queue: "default",
  priority: 5,
  version: 2,
  policy: POLICY,
};

const QUIET = { schedules: [], isScheduler: false, pollMs: 1_000 };

export function instanceSuite(test: SceneTest): void {
  test("a remote worker's name is its owner's while it lives, and never that of a live instance", async ({
    scene,
  }) => {
    const local = await scene.announce("local", scene.store, {
      works: { jobs: ["here"], queues: null },
    });
    const remote = (instanceId: string, by: string) =>
      scene.store.instances.announceRemote({
        instanceId,
        by,
        works: { jobs: ["far"], queues: ["eu"] },
        pollMs: 1_000,
      });
    expect(await remote("local", "ada")).toBeNull();
    const no = await remote("w1", "ada");
    expect(no).toEqual(expect.any(Number));
    expect(await remote("w1", "ada")).toBe(no);
    expect(await remote("w1", "bob")).toBeNull();
    expect(await scene.store.jobs.local(["here", "far", "none"])).toEqual(["here"]);
    scene.advance(61_000);
    expect(await remote("w1", "bob")).toBe(no);
    expect(await scene.store.jobs.local(["here"])).toEqual([]);
    await scene.store.instances.retire({ holder: local });
    expect(await remote("local", "ada")).toBe(local);
  });

  test("each instance gets a number of its own, and the same instance the same one", async ({
    scene,
  }) => {
    const one = await scene.announce("host:1:one");
    const two = await scene.announce("host:1:two");
    expect(two).not.toBe(one);
    expect(await scene.announce("host:1:one")).toBe(one);
  });

  test("an announced job is known to callers with all its options", async ({ scene }) => {
    const policy = policyWith({ leaseMs: 5_000, attempts: 7, onLost: "fail" });
    const mail: JobAnnouncement = { ...STUDY, name: "mail", queue: "slow", policy };
    await scene.store.instances.announce({
      instanceId: "host:1:a",
      app: "shop",
      release: "1.2.3",
      jobs: [STUDY, mail],
      ...QUIET,
    });
    expect(await scene.store.jobs.list()).toEqual([mail, STUDY]);
  });

  test("a job is stored as the newest instance announced it", async ({ scene }) => {
    const newer = { ...STUDY, priority: -5, version: 3, policy: policyWith({ attempts: 1 }) };
    const announce = (instanceId: string, job: JobAnnouncement) =>
      scene.store.instances.announce({
        instanceId,
        app: null,
        release: null,
        jobs: [job],
        ...QUIET,
      });
    await announce("old", STUDY);
    await announce("new", newer);
    expect(await scene.store.jobs.list()).toEqual([newer]);
  });

  test("many instances that announce the same jobs at once do not get in each other's way", async ({
    scene,
  }) => {
    const jobs = Array.from({ length: 20 }, (_, at) => ({ ...STUDY, name: `job-${at}` }));
    const numbers = await Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        scene.store.instances.announce({
          instanceId: `instance-${at}`,
          app: null,
          release: null,
          jobs: at % 2 === 0 ? jobs : jobs.toReversed(),
          ...QUIET,
        }),
      ),
    );
    expect(new Set(numbers).size).toBe(6);
    expect(await scene.store.jobs.list()).toHaveLength(20);
  });

  test("a retired instance keeps its jobs known and may come back under its number", async ({
    scene,
  }) => {
    const announcement = {
      instanceId: "host:1:a",
      app: null,
      release: null,
      jobs: [STUDY],
      ...QUIET,
    };
    const holder = await scene.store.instances.announce(announcement);
    await scene.store.instances.retire({ holder });
    expect(await scene.store.jobs.list()).toEqual([STUDY]);
    expect(await scene.store.instances.announce(announcement)).toBe(holder);
  });
}
