// A service that runs are dispatched to, as the network of each instance reaches it. It answers at once,
// says that it goes on by itself and calls back (well, twice, or too late), fails, hangs, is cut off
// while it answers, or cannot be reached at all for a while.

import { hosting } from "../../../instance/server-internals.js";
import type { Network, PinnedRequest, PinnedResponse } from "../../../shared/ports.js";
import type { RemoteHistory } from "../checkers/remote.js";
import type { EventLog } from "../event-log.js";
import { mix } from "../random.js";
import type { Effects } from "../workload/effects.js";
import type { SimulatedProcess } from "./process.js";
import type { ElsewhereLine } from "./remote-line.js";

export type TargetWorld = {
  readonly chronicle: EventLog;
  readonly seed: number;
  readonly line: ElsewhereLine;
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

/** In each hour it is out of reach once, for long enough that circuits open. */
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

  /** As this process reaches it. */
  networkOf(process: SimulatedProcess): Network {
    return {
      resolve: () => Promise.resolve(["198.18.0.7"]),
      send: async (request) => {
        const sent = this.#receive(request, process);
        // Answers, good or bad, reach a process only while it runs.
        await sent.catch(() => undefined);
        await new Promise<void>((resolve) => process.clock.arrive(resolve));
        return sent;
      },
    };
  }

  async #receive(request: PinnedRequest, process: SimulatedProcess): Promise<PinnedResponse> {
    const { chronicle, seed, pass, isQuiet, effects, nowMs } = this.#world;
    const order = JSON.parse(new TextDecoder().decode(request.body)) as Order;
    const luck = mix(seed, "target", order.fence);
    await pass(1 + (luck % 40));
    if (this.#isAway()) {
      chronicle.saw("dispatch-undelivered");
      throw new Error("connection refused");
    }
    request.onConnected();
    effects.begun(`the target of ${process.label}`, order);
    const answer = isQuiet() ? "done" : (ANSWERS[luck % ANSWERS.length] ?? "done");
    chronicle.tell(() => `the target ${answer}: run under fence ${order.fence}`);
    if (answer !== "done" && answer !== "goes-on") this.#world.struck();
    switch (answer) {
      case "done":
        await pass(100 + (luck % 12_000));
        effects.ended(order, nowMs());
        chronicle.saw("dispatch-done");
        return response(200, { fence: order.fence, attempt: order.attempt });
      case "goes-on":
        void this.#goOn(order, luck, process);
        return response(202, null);
      case "late":
        // It forgets to say that it is alive.
        void pass(1.2 * order.leaseMs + (luck % 20_000)).then(() =>
          this.#end(order, { isLate: true }),
        );
        return response(202, null);
      case "fails":
        await pass(luck % 3_000);
        chronicle.saw("dispatch-failed");
        return response(luck % 5 === 0 ? 503 : 500, null);
      case "is-cut":
        await pass(luck % 9_000);
        effects.ended(order, nowMs());
        chronicle.saw("dispatch-unknown");
        throw new Error("socket hang up");
      case "hangs":
        chronicle.saw("dispatch-unknown");
        return new Promise<never>(() => undefined);
    }
  }

  #isAway(): boolean {
    const ms = this.#world.elapsedMs();
    return !this.#world.isQuiet() && ms >= this.#awayFromMs && ms < this.#awayFromMs + AWAY_MS;
  }

  async #goOn(order: Order, luck: number, process: SimulatedProcess): Promise<void> {
    const { line, pass, chronicle } = this.#world;
    const grant = { id: order.runId, fence: order.fence };
    if (!process.isDead && !process.holdfast[hosting].isCallbackToken({ ...order }))
      chronicle.violate("S3", `The callback token of ${order.runId} does not fit.`);
    for (let part = 0; part < luck % 4; part += 1) {
      await pass(order.leaseMs / 3);
      const told = await line.ask({
        name: `target beat ${order.fence} ${part}`,
        ask: (remote) => remote.beat(grant),
      });
      if (told.kind === "refused") return;
    }
    await pass(luck % 3_000);
    await this.#end(order, { isLate: false });
    if (luck % 3 === 0) await this.#end(order, { isLate: false, isAgain: true });
  }

  async #end(order: Order, how: { readonly isLate: boolean; isAgain?: boolean }): Promise<void> {
    const { line, effects, history, chronicle, nowMs } = this.#world;
    const { runId: id, fence, attempt } = order;
    effects.ended(order, nowMs());
    const told = await line.ask<void>({
      name: `target complete ${fence}${how.isAgain ? " again" : ""}`,
      ask: (remote) => remote.complete({ id, fence }, { fence, attempt }),
      onAnswer: ({ kind }) => {
        if (kind !== "unknown") history.ended({ id, fence }, kind === "answered");
      },
    });
    if (told.kind === "answered") chronicle.saw("dispatch-called-back");
    if (told.kind === "refused" && how.isLate) chronicle.saw("dispatch-late-refused");
  }
}

function response(status: number, body: unknown): PinnedResponse {
  const text = body === null ? "" : JSON.stringify(body);
  return { status, headers: new Headers(), body: new TextEncoder().encode(text), isCut: false };
}
