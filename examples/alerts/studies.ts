// Overnight studies with the alerts of their operators: no heartbeat for ten minutes, a fifth of a day's runs failed,
// more than five at once, half an hour for ten studies.

import { type AlertNotice, Holdfast } from "holdfast";

export function openStudies(params: {
  readonly database: string;
  /** Gets every alert: here a function; in production Slack, a webhook or an e-mail. */
  readonly tell: (alert: AlertNotice) => void;
  readonly look: (market: string) => Promise<void>;
}): Holdfast {
  const { database, tell, look } = params;
  const quiet = { debug() {}, info() {}, warn() {}, error() {} };
  const holdfast = new Holdfast({
    database,
    logger: quiet,
    alerts: {
      stale: "10m",
      failureRate: { above: 0.2, over: "24h", atLeast: 2 },
      running: { above: 5 },
      slow: { perItem: "3m", total: "30m" },
      to: [tell],
    },
  });
  holdfast.job("market-study", {
    retry: { attempts: 1 },
    run: (input: { market: string }) => look(input.market),
  });
  return holdfast;
}
