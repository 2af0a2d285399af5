// Many instances that fire what is due and execute nothing. Each is one poller; the schedules are theirs together.

import { Holdfast } from "../../build/index.js";

/** @param {{ url: string, schedules: number, pollers: number }} params */
export async function open({ url, schedules, pollers }) {
  const instances = Array.from({ length: pollers }, () => new Holdfast({ database: url }));
  const jobs = instances.map((instance) => instance.job("noop", { run: async () => {} }));
  for (let at = 0; at < schedules; at += 1) {
    const when = { cron: "* * * * * *", overlap: "allow" };
    await instances[0].schedules.upsert(`second-${at}`, { job: jobs[0], ...when });
  }
  return {
    polls: instances.map((instance) => async () => {
      const { fired } = await instance.tick({ limit: 0 });
      return fired.length;
    }),
    close: () => Promise.all(instances.map((instance) => instance.stop())),
  };
}
