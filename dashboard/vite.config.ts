// How the page is built: static files with hashed names and relative addresses, so that it runs under
// whatever path the handler is mounted at. scripts/build.mjs calls it and packs what comes out.

import tailwindcss from "@tailwindcss/vite";
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  base: "./",
  plugins: [tailwindcss()],
  build: {
    target: "es2022",
    // Nothing is inlined: the policy of the page allows no data: address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    reportCompressedSize: false,
    emptyOutDir: true,
    // How long each plugin takes is nothing that somebody who builds can act on.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
});
