// Serves the check-ins of monitored work.

import type { PingOptions } from "../../schedules/check-in.js";
import { type Call, given, type Implementation, on, reply } from "../router.js";
import { ROUTES } from "../wire/contract.js";

export const checkInRoutes: readonly Implementation[] = [
  on(ROUTES.ping, ({ body: { deliveryId }, ...call }) =>
    ping(call, { ...given({ deliveryId }), state: "ok" }),
  ),
  on(ROUTES.pingStart, (call) => ping(call, { state: "start" })),
  on(ROUTES.pingFail, ({ body, ...call }) => ping(call, { ...given(body), state: "fail" })),
];

async function ping({ holdfast, params }: Pick<Call, "holdfast" | "params">, options: PingOptions) {
  return reply({ ok: true, ...(await holdfast.schedules.ping(String(params.monitor), options)) });
}
