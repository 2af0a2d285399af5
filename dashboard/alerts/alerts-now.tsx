// The open alerts for the overview; renders nothing if there are none.

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../api/call.js";
import { plural } from "../shared/format.js";
import { Sentence } from "../shared/sentence.js";
import { Ago } from "../shared/time.js";
import { SubjectLink } from "./subject-link.js";

const SHOWN = 3;

export function AlertsNow() {
  const query = useQuery({
    queryKey: ["alerts", "now"],
    queryFn: ({ signal }) =>
      call("listAlerts", "GET /api/alerts", { query: { limit: 20 }, signal }),
  });
  const alerts = query.data?.alerts ?? [];
  if (alerts.length === 0) return null;
  const isCritical = alerts.some(({ severity }) => severity === "critical");
  return (
    <section
      aria-label="Open alerts"
      className={`rounded-lg border px-4 py-2.5 ${isCritical ? "border-failed/50 bg-failed/8" : "border-late/50 bg-late/12"}`}
    >
      <h2 className="text-xs font-medium text-muted">
        <Link href="/alerts" className="link">
          {plural(alerts.length, "open alert")}
        </Link>
      </h2>
      <ul className="mt-1 grid gap-0.5">
        {alerts.slice(0, SHOWN).map((alert) => (
          <li key={alert.id} className="flex flex-wrap items-baseline justify-between gap-x-4">
            <span className="min-w-0">
              <SubjectLink subject={alert.subject} /> <Sentence text={alert.message} />
            </span>
            <span className="text-xs text-muted">
              opened <Ago at={alert.firstAt} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
