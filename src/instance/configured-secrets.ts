// Lists the secrets of a configuration by value, so that no text which is stored or logged shows one of them.

import type { AlertConfig } from "../alerts/alert-options.js";
import type { Destination } from "../alerts/destinations/destinations.js";
import type { BuiltInJobs } from "../remote/built-in-jobs.js";
import { headerSecrets } from "../shared/known-secrets.js";
import type { Config } from "./config.js";

const SECRET_VARIABLE = /pass|pwd|secret|token|key|credential|auth/i;

export function configuredSecrets(
  config: Pick<Config, "database" | "dispatch" | "alerts" | "builtIn">,
): readonly string[] {
  const { database, dispatch, alerts, builtIn } = config;
  return [
    ...(typeof database === "string" ? passwordsOf(database) : []),
    ...[...dispatch.targets.values()].flatMap(({ url, secrets }) => [
      ...secrets,
      ...passwordsOf(url),
    ]),
    ...alertSecrets(alerts),
    ...builtInSecrets(builtIn),
  ];
}

function builtInSecrets({ shell, http }: BuiltInJobs): readonly string[] {
  const headers = [...(http?.origins.values() ?? [])].flatMap((each) =>
    headerSecrets(each.headers),
  );
  const variables = [...(shell?.commands.values() ?? [])]
    .flatMap(({ env }) => Object.entries(env))
    .filter(([name]) => SECRET_VARIABLE.test(name))
    .map(([, value]) => value);
  return [...headers, ...variables];
}

function alertSecrets(alerts: AlertConfig): readonly string[] {
  if (alerts === null) return [];
  const { destinations, heartbeat } = alerts;
  const own = heartbeat === null ? [] : [heartbeat.url, heartbeat.token ?? ""];
  return [...own, ...destinations.flatMap(destinationSecrets)];
}

function destinationSecrets(destination: Destination): readonly string[] {
  switch (destination.type) {
    case "webhook":
      return destination.secrets;
    case "slack":
      return [destination.url];
    case "email": {
      const { smtp } = destination;
      if (typeof smtp === "string") return passwordsOf(smtp);
      const { pass } = (smtp.auth ?? {}) as { readonly pass?: unknown };
      return typeof pass === "string" ? [pass] : [];
    }
    case "function":
      return [];
  }
}

/** As it is written in the address, and as it is meant. */
function passwordsOf(url: string): readonly string[] {
  const [, written] = /^[^:]*:\/\/[^:@/]*:(.*)@/s.exec(url) ?? [];
  if (written === undefined) return [];
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written];
  }
}
