// Makes build/ and dist/ match the sources: tests that run the program as users do need it built.

import { ensureBuilt } from "../../scripts/bootstrap.mjs";

export function setup(): void {
  if (!ensureBuilt()) throw new Error("The build failed; the messages above say where.");
}
