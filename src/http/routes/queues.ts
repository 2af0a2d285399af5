// Serves queues: list with their depth, pause, resume.

import { type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const queueRoutes: readonly Implementation[] = [
  on(ROUTES.listQueues, async ({ holdfast }) => reply({ queues: await holdfast.queues.list() })),
  on(ROUTES.pauseQueue, async ({ acting, params, body }) =>
    reply(await acting.queues.pause(String(params.name), body.note)),
  ),
  on(ROUTES.resumeQueue, async ({ acting, params }) =>
    reply(await acting.queues.resume(String(params.name))),
  ),
];
