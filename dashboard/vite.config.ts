// Builds the page: static files with hashed names and relative addresses, so that it runs under any mount path.
// scripts/build.mjs calls it and packs the result.

import tailwindcss from "@tailwindcss/vite";
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  plugins: [tailwindcss()],
  build: {
    target: "es2022",
    // Nothing is inlined: the page's security policy forbids data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    reportCompressedSize: false,
    emptyOutDir: true,
    // The time of each plugin is of no use to the person who builds.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
});
