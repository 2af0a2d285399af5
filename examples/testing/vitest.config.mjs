// The ending tells the three frameworks' files apart; a project with one framework needs none of this.

import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["*.vitest.mjs"] } });
