// The file ending separates the files of the three frameworks; a project with one framework needs none of this.

import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["*.vitest.mjs"] } });
