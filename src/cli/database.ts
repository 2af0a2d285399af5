// Database addresses as the command line gets them: checked before anything is loaded, and judged
// by whether they lead beyond this machine.

import { hostname } from "node:os";
import { absoluteDatabase } from "../instance/launch-overrides.js";
import { systemClock } from "../shared/adapters/clock.js";
import { systemRandom } from "../shared/adapters/random.js";
import { ConfigurationError } from "../shared/errors.js";
import { storeFor } from "../store/open.js";
import { UsageError } from "./flags/usage.js";

/** The value of --database, its path absolute: it was typed in this folder, wherever the code lies. */
export const readDatabaseFlag = databaseFlag("--database");

/** Reads a database's address that was given by this flag. */
export function databaseFlag(flag: string): (url: string) => string {
  return (url) => {
    refuseOthers(url, flag);
    return absoluteDatabase(url, process.cwd());
  };
}

function refuseOthers(url: string, flag: string): void {
  try {
    // Makes no connection; it is asked only whether it knows what this is.
    storeFor({
      database: url,
      schema: "holdfast",
      synchronous: "FULL",
      migrate: "off",
      mayCreate: false,
      clock: systemClock,
      chance: systemRandom,
    });
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    // Not commander's own kind of error: it would repeat the value, password and all.
    throw new UsageError(`${flag}: ${error.problems.map(({ message }) => message).join(" ")}`);
  }
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?|\[?::ffff:127(\.\d{1,3}){3}\]?)$/i;

/** Whether what is done there may be seen by others. When in doubt: yes. */
export function isBeyondThisMachine(url: string): boolean {
  if (url.startsWith("sqlite:")) return false;
  try {
    const { hostname: named, searchParams } = new URL(url);
    const hosts = searchParams.getAll("host");
    const host = hosts.at(-1) || named || process.env.PGHOST || "localhost";
    const isSocket = decodeURIComponent(host).startsWith("/");
    return !isSocket && !LOOPBACK.test(host) && host !== hostname();
  } catch {
    return true;
  }
}
