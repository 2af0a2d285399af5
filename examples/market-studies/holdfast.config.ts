// Holdfast's side: it stores the runs, sends them to the worker service and receives its callbacks. Each call of `POST
// /api/tick` makes it poll; `holdfast start` and `holdfast dev` can also poll by themselves.

import { Holdfast } from "holdfast";
import { defineStudies, studiesOptions } from "./studies.js";

const {
  HOLDFAST_DATABASE_URL = "",
  HOLDFAST_PORT = "4780",
  HOLDFAST_PUBLIC_URL = `http://127.0.0.1:${HOLDFAST_PORT}`,
  WORKER_URL = "http://127.0.0.1:4792/",
  STUDIES_SECRET = "a-secret-for-the-worker",
  STUDY_LEASE = "10m",
} = process.env;

const holdfast = new Holdfast(
  studiesOptions({
    publicUrl: HOLDFAST_PUBLIC_URL,
    worker: { url: WORKER_URL, secret: STUDIES_SECRET },
    views: HOLDFAST_DATABASE_URL.startsWith("postgres") ? "holdfast." : "",
  }),
);
defineStudies(holdfast, { lease: STUDY_LEASE as "10m" });

export default holdfast;
