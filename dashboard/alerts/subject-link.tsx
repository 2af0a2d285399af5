// Names the subject of an alert (a schedule, job or instance), with a link to its page.

import { Link } from "wouter";
import type { Alert } from "../api/wire.js";

export function SubjectLink({ subject }: { readonly subject: Alert["subject"] }) {
  const { type, name } = subject;
  const path =
    type === "schedule"
      ? `/schedules/${encodeURIComponent(name)}`
      : type === "job"
        ? `/runs?job=${encodeURIComponent(name)}`
        : type === "instance"
          ? "/instances"
          : null;
  if (path === null) return <>{name}</>;
  return (
    <Link href={path} className="link">
      {type} {name}
    </Link>
  );
}
