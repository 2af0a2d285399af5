// Simulates a service that runs are dispatched to. It completes the run in its response, accepts it and calls back
// (in time, twice, or too late), fails, hangs, loses the connection during its response, or is unreachable for a while.

import { serverInternals } from "../../../instance/server-internals.js";
import type { Network, PinnedRequest, PinnedResponse } from "../../../shared/ports.js";
import type { Effects } from "../checkers/effects.js";
import type { RemoteHistory } from "../checkers/remote.js";
import type { EventLog } from "../event-log.js";
import { mix } from "../random.js";
import type { SimulatedProcess } from "./process.js";
import type { RemoteConnection } from "./remote-connection.js";

export type TargetWorld = {
  readonly log: EventLog;
  readonly seed: number;
  readonly connection: RemoteConnection;
  readonly effects: Effects;
  readonly history: RemoteHistory;
  nowMs(): number;
  elapsedMs(): number;
  pass(ms: number): Promise<void>;
  isQuiet(): boolean;
  struck(): void;
};

type Order = { readonly runId: string; readonly fence: number; readonly attempt: number } & {
  readonly job: string;
  readonly leaseMs: number;
  readonly token: string;
};

/** It is unreachable once per hour, for long enough that circuits open. */
const AWAY_MS = 4 * 60_000;
const HOUR_MS = 3_600_000;
const ANSWERS = ["done", "done", "goes-on", "goes-on", "fails", "hangs", "is-cut", "late"] as const;

export class Target {
  readonly #world: TargetWorld;
  readonly #awayFromMs: number;

  constructor(world: TargetWorld) {
    this.#world = world;
    this.#awayFromMs = mix(world.seed, "away") % (HOUR_MS - AWAY_MS);
  }

  /** Returns the network through which this process reaches the service. */
  networkOf(process: SimulatedProcess): Network {
    return {
      resolve: () => Promise.resolve(["198.18.0.7"]),
      send: async (request) => {
        const sent = this.#receive(request, process);
        // Responses, good or bad, reach a process only while it runs.
        await sent.catch(() => undefined);
        await new Promise<void>((resolve) => process.clock.arrive(resolve));
        return sent;
      },
    };
  }

  async #receive(request: PinnedRequest, process: SimulatedProcess): Promise<PinnedResponse> {
    const { log, seed, pass, isQuiet, effects, nowMs } = this.#world;
    const order = JSON.parse(new TextDecoder().decode(request.body)) as Order;
    const luck = mix(seed, "target", order.fence);
    await pass(1 + (luck % 40));
    if (this.#isAway()) {
      log.saw("dispatch-undelivered");
      throw new Error("connection refused");
    }
    request.onConnected();
    effects.begun(`the target of ${process.label}`, order);
    const answer = isQuiet() ? "done" : (ANSWERS[luck % ANSWERS.length] ?? "done");
    log.narrate(() => `the target ${answer}: run under fence ${order.fence}`);
    if (answer !== "done" && answer !== "goes-on") this.#world.struck();
    switch (answer) {
      case "done":
        await pass(100 + (luck % 12_000));
        effects.ended(order, nowMs());
        log.saw("dispatch-done");
        return response(200, { fence: order.fence, attempt: order.attempt });
      case "goes-on":
        void this.#goOn(order, luck, process);
        return response(202, null);
      case "late":
        // It sends no heartbeats.
        void pass(1.2 * order.leaseMs + (luck % 20_000)).then(() =>
          this.#end(order, { isLate: true }),
        );
        return response(202, null);
      case "fails":
        await pass(luck % 3_000);
        log.saw("dispatch-failed");
        return response(luck % 5 === 0 ? 503 : 500, null);
      case "is-cut":
        await pass(luck % 9_000);
        effects.ended(order, nowMs());
        log.saw("dispatch-unknown");
        throw new Error("socket hang up");
      case "hangs":
        log.saw("dispatch-unknown");
        return new Promise<never>(() => undefined);
    }
  }

  #isAway(): boolean {
    const ms = this.#world.elapsedMs();
    return !this.#world.isQuiet() && ms >= this.#awayFromMs && ms < this.#awayFromMs + AWAY_MS;
  }

  async #goOn(order: Order, luck: number, process: SimulatedProcess): Promise<void> {
    const { connection, pass, log } = this.#world;
    const grant = { id: order.runId, fence: order.fence };
    if (!process.isDead && !process.holdfast[serverInternals].isCallbackToken({ ...order }))
      log.violate("S3", `The callback token of ${order.runId} does not fit.`);
    for (let part = 0; part < luck % 4; part += 1) {
      await pass(order.leaseMs / 3);
      const reply = await connection.call({
        name: `target beat ${order.fence} ${part}`,
        send: (remote) => remote.beat(grant),
      });
      if (reply.kind === "refused") return;
    }
    await pass(luck % 3_000);
    await this.#end(order, { isLate: false });
    if (luck % 3 === 0) await this.#end(order, { isLate: false, isAgain: true });
  }

  async #end(order: Order, how: { readonly isLate: boolean; isAgain?: boolean }): Promise<void> {
    const { connection, effects, history, log, nowMs } = this.#world;
    const { runId: id, fence, attempt } = order;
    effects.ended(order, nowMs());
    const reply = await connection.call<void>({
      name: `target complete ${fence}${how.isAgain ? " again" : ""}`,
      send: (remote) => remote.complete({ id, fence }, { fence, attempt }),
      onReply: ({ kind }) => {
        if (kind !== "unknown") history.ended({ id, fence }, kind === "answered");
      },
    });
    if (reply.kind === "answered") log.saw("dispatch-called-back");
    if (reply.kind === "refused" && how.isLate) log.saw("dispatch-late-refused");
  }
}

function response(status: number, body: unknown): PinnedResponse {
  const text = body === null ? "" : JSON.stringify(body);
  return { status, headers: new Headers(), body: new TextEncoder().encode(text), isCut: false };
}
