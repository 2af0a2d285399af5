// `holdfast signal`: sends one signal to the runs that wait for it, now or later.

import type { Command } from "commander";
import { requireKey, requireName } from "../../shared/names.js";
import { act, type Call, newCommand, withConfigOption } from "../command.js";
import { UsageError } from "../failure.js";
import { readInput, refusing } from "../flags/read.js";
import { type CommonFlags, withInstance } from "../instance.js";
import { EXIT, plain } from "../shell.js";

type Flags = CommonFlags & { readonly key?: string; readonly value?: string };

const EXAMPLE = `signal export-ready --key export-7 --value '{"url":"/7"}'`;

export function signalCommand(call: Call): Command {
  const command = newCommand({
    name: "signal",
    summary: "Send a signal to the runs that wait for it, now or later.",
    examples: [
      EXAMPLE,
      "signal approved --key order-7",
      "cat value.json | holdfast signal export-ready --key export-7 --value -",
    ],
  })
    .argument("<name>", "name of the signal", (name) => refusing(() => requireName(name, "name")))
    .option("--key <key>", "an id that the waiting run knows, such as that of an order", (text) =>
      refusing(() => requireKey(text, "--key")),
    )
    .option("--value <json>", "its value as JSON, or - for standard input (default: null)");
  return act<Flags>(
    withConfigOption(command),
    call,
    async ({ key, value, ...flags }, name = "") => {
      const { shell } = call;
      if (key === undefined)
        throw new UsageError(
          `--key says which ${name} it is, for example \`holdfast ${EXAMPLE}\`. A run that waits without a key waits for its own id.`,
        );
      const given = value === undefined ? null : await readInput(value, "--value");
      return withInstance({ flags, purpose: "add", shell }, async (holdfast) => {
        const sent = await holdfast.signal(name, { key, value: given });
        const shown = `Signal ${plain(name)} with the key ${plain(key)}`;
        await shell.say(
          sent.repeated ? `${shown} was sent with this value before.` : `${shown} sent.`,
        );
        await shell.printJson({ name, key, ...sent });
        return EXIT.done;
      });
    },
  );
}
