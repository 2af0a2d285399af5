// Holdfast's side: it stores the runs, sends them to the worker service and receives its callbacks. Each call of `POST
// /api/tick` makes it poll; `holdfast start` and `holdfast dev` can also poll by themselves.

import { Holdfast } from "holdfast";
import { alerts, checks, defineStudies } from "./studies.js";

const { env } = process;
const holdfast = new Holdfast({
  publicUrl: env.HOLDFAST_PUBLIC_URL || `http://127.0.0.1:${env.HOLDFAST_PORT || 4780}`,
  workers: {
    studies: {
      url: env.WORKER_URL || "http://127.0.0.1:4792/",
      secret: env.STUDIES_SECRET || "a-secret-for-the-worker",
      allowPrivateNetwork: true,
    },
  },
  alerts,
  checks: checks(env.HOLDFAST_DATABASE_URL?.startsWith("postgres") ? "holdfast." : ""),
});
defineStudies(holdfast, env.STUDY_LEASE);

export default holdfast;
