// `holdfast dev`: one instance for development, reloaded when a source file changes. It keeps away
// from databases beyond this machine: a forgotten variable must not make a laptop part of production.

import path from "node:path";
import type { Command } from "commander";
import { redactUrl } from "../../shared/redact.js";
import { act, type Call, newCommand } from "../command.js";
import { isBeyondThisMachine } from "../database.js";
import { superviseReloading } from "../dev/reload.js";
import { ImpossibleError } from "../failure.js";
import { FlagErrors } from "../flags/errors.js";
import { UsageError } from "../flags/usage.js";
import { loadInstance, requireConfig } from "../instance.js";
import { readPlace } from "../serving.js";
import type { Shell } from "../shell.js";
import { workUntilSignal } from "../work.js";
import { startOptions, type WorkFlags, withConfig, withWorkOptions } from "./start.js";

/** Shorter than in production: somebody waits for the reload. */
const GRACE_MS = 5_000;

type DevFlags = WorkFlags & { readonly reload: boolean; readonly yes?: boolean };

export function devCommand(call: Call): Command {
  const command = newCommand({
    name: "dev",
    summary: "Run an instance for development: SQLite unless told otherwise, reloads on change.",
    examples: [
      "dev",
      "dev jobs/holdfast.config.ts --concurrency 2",
      "dev --database postgres://app@db.example.com/app --yes",
    ],
  });
  withWorkOptions(command)
    .option("--no-reload", "do not start anew when a source file changes")
    .option("--yes", "use a database beyond this machine");
  const action = async (flags: DevFlags, config?: string) => {
    const { shell } = call;
    const errors = new FlagErrors(call.wrong);
    const start = errors.read(() => startOptions(flags), {});
    const place = errors.read(() => readPlace(flags, process.env), null);
    errors.read(() => refuseFarFlag(flags), undefined);
    // What is wrong needs no second half to be said.
    if (flags.reload && !errors.isWrong) {
      const folder = path.dirname(requireConfig(config));
      const args = [...process.argv.slice(2), "--no-reload"];
      return superviseReloading({ args, folder, shell });
    }
    ignoreFarEnvironment(shell);
    const holdfast = await errors.load((problems) =>
      loadInstance({ flags: withConfig(flags, config), shell, mayPause: false, problems }),
    );
    refuseFarCode(holdfast.settings().database, flags);
    return workUntilSignal({
      holdfast,
      start,
      place,
      isDevelopment: true,
      graceMs: GRACE_MS,
      shell,
    });
  };
  return act<DevFlags>(command, call, action, { reportsFlagErrors: true });
}

function refuseFarFlag({ database, yes }: DevFlags): void {
  if (database === undefined || yes || !isBeyondThisMachine(database)) return;
  throw new UsageError(
    `${redactUrl(database)} is beyond this machine. Add --yes if runs there are meant to be executed here.`,
  );
}

function ignoreFarEnvironment(shell: Shell): void {
  const url = process.env.HOLDFAST_DATABASE_URL;
  if (!url || !isBeyondThisMachine(url)) return;
  // Said before the instance is made, which reads the variable.
  delete process.env.HOLDFAST_DATABASE_URL;
  shell.complain(
    `Ignored: HOLDFAST_DATABASE_URL (${redactUrl(url)}) is beyond this machine. ` +
      "To use it in development, give --database and --yes.",
  );
}

/** A given handle cannot be judged, and is the author's own decision. */
function refuseFarCode(database: string, { yes }: DevFlags): void {
  if (yes || !/^postgres(ql)?:/.test(database) || !isBeyondThisMachine(database)) return;
  throw new ImpossibleError(
    `The configuration file's database (${database}) is beyond this machine. Give --database with one ` +
      "of your own, or --yes if runs there are meant to be executed here.",
  );
}
