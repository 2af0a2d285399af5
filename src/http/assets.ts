// Holds the files of the dashboard for page.ts: gzip in base64. In the source it is empty; scripts/build.mjs writes the real
// module into build/. page.ts imports it on the first request of the page, so a process that serves only the API never loads it.

export type Asset = {
  readonly type: string;
  /** Compressed by gzip, in base64. */
  readonly gzip: string;
};

/** The page itself; null: it was not built. */
export const INDEX: string | null = null;

/** By name, without any folder. Names change with the content. */
export const ASSETS: Readonly<Record<string, Asset>> = {};
