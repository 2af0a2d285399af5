// The server: it stores runs and speaks HTTP; none of its code executes them.

import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Holdfast } from "holdfast";
import { createHandler } from "holdfast/http";

export const holdfast = new Holdfast({ database: "sqlite:words.db" });
// A job without `run`: remote workers execute it.
export const wordCount = holdfast.job("word-count", { lease: "10s" });

const handler = createHandler(holdfast, { secrets: { worker: "the-worker-secret" } });
export const server = createServer(getRequestListener((request) => handler(request)));
