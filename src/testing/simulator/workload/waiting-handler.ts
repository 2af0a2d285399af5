// The handler of a run that waits durably: steps, sleeps, waits for signals that come before, after or never, and calls of runs
// that end in different ways.

import { ChildFailedError } from "../../../shared/errors.js";
import type { RunContext } from "../../../worker/handler/context.js";

export const SIGNAL = "approved";
/** Several orders share a signal. */
const KEYS = 9;
const CALLED = ["quick", "quick", "flaky", "wrong", "once", "slow"] as const;

/** Records what the handler did and received. */
type Witness = {
  effect(ctx: RunContext, name: string): void;
  received(ctx: RunContext, name: string, value: unknown): void;
};

type Work = {
  readonly ctx: RunContext;
  readonly host: Witness;
  /** The same for all executions of a run. */
  readonly fate: number;
  /** Different for each execution. */
  readonly luck: number;
  rest(ms: number): Promise<void>;
};

/** The signal's key of an order. */
export function keyOf(luck: number): string {
  return `order-${luck % KEYS}`;
}

/** The fate of a handler decides its calls, so that every execution takes the same path. */
export async function waitDurably({ ctx, host, fate, luck, rest }: Work, n: number): Promise<void> {
  const heard = <T>(name: string, answer: Promise<T>): Promise<T> =>
    answer.then((value) => {
      host.received(ctx, name, value);
      return value;
    });
  const step = (name: string, isRetried = false) => {
    const fails = (luck >> name.length) % 4 === 0;
    const work = async () => {
      host.effect(ctx, name);
      await rest(fate % 900);
      if (fails) throw new Error("The service answered 503.");
      return ctx.fence;
    };
    const retry = { retry: { attempts: 6, delay: "3s", max: "20s" } } as const;
    return heard(name, ctx.step(name, work, isRetried ? retry : {}));
  };
  await step("begin", true);
  await heard("pause", ctx.sleep(200 + (fate % 90_000), { name: "pause" }));
  await approval({ ctx, fate, heard }, n);
  await Promise.all([
    called({ ctx, fate, heard }, "call"),
    called({ ctx, fate: fate >> 3, heard }, "another"),
    heard("nap", ctx.sleep(fate % 20_000, { name: "nap" })),
    step("beside", true),
  ]);
  await step("publish", fate % 2 === 0);
  if ((luck >> 4) % 4 === 0) throw new Error("The service hung up after everything was stored.");
}

type Asked = Pick<Work, "ctx" | "fate"> & {
  heard<T>(name: string, answer: Promise<T>): Promise<T>;
};

/** By the key of the order, with or without a deadline, or by the id of the run. */
async function approval({ ctx, fate, heard }: Asked, n: number): Promise<void> {
  const name = "approval";
  const timeout = 5_000 + (fate % 400_000);
  switch (fate % 4) {
    case 0:
      await heard(name, ctx.waitFor(SIGNAL, { key: keyOf(n), since: "any", name }));
      return;
    case 1:
      await heard(name, ctx.waitFor(SIGNAL, { key: keyOf(n), since: "any", timeout, name }));
      return;
    case 2:
      await heard(name, ctx.waitFor(SIGNAL, { key: keyOf(n), timeout, name }));
      return;
    default:
      await heard(name, ctx.waitFor(SIGNAL, { name }));
  }
}

async function called({ ctx, fate, heard }: Asked, name: string): Promise<void> {
  const job = CALLED[fate % CALLED.length] as string;
  const onCancel = fate % 5 === 0 ? "leave" : "cancel";
  const answer = ctx.call(job, { n: fate }, { name, onCancel }).catch((error: unknown) => {
    if (!(error instanceof ChildFailedError)) throw error;
    return null;
  });
  await heard(name, answer);
}
