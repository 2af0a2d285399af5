// Checks database addresses of flags for the commands before anything is loaded, and tells local from remote databases.

import { hostname } from "node:os";
import { absoluteDatabase } from "../instance/context.js";
import { systemClock } from "../shared/adapters/clock.js";
import { systemRandom } from "../shared/adapters/random.js";
import { ConfigurationError } from "../shared/errors.js";
import { storeFor } from "../store/open.js";
import { UsageError } from "./failure.js";

/** Reads --database. A relative path begins at the current folder, not at that of the code. */
export const readDatabaseFlag = databaseFlag("--database");

/** Returns a reader for the database address of this flag. */
export function databaseFlag(flag: string): (url: string) => string {
  return (url) => {
    refuseUnknown(url, flag);
    return absoluteDatabase(url, process.cwd());
  };
}

function refuseUnknown(url: string, flag: string): void {
  try {
    // This opens no connection; it only parses the address.
    storeFor({
      database: url,
      schema: "holdfast",
      synchronous: "FULL",
      migrate: "off",
      mayCreate: false,
      clock: systemClock,
      random: systemRandom,
    });
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    // Not commander's own error, which would print the value with its password.
    throw new UsageError(`${flag}: ${error.problems.map(({ message }) => message).join(" ")}`);
  }
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?|\[?::ffff:127(\.\d{1,3}){3}\]?)$/i;

/** Whether the database is on another machine. In doubt: yes. */
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
