// The files of the page, as the build packs them: compressed, in base64. Here there are none; the
// build (scripts/build.mjs) writes its own version of this module into build/. It is imported when
// somebody asks for the page, so that a process that serves the API alone never loads it.

export type Asset = {
  readonly type: string;
  /** Compressed by gzip, in base64. */
  readonly gzip: string;
};

/** The page itself; null: it was not built. */
export const INDEX: string | null = null;

/** By name, without any folder. Names change with the content. */
export const ASSETS: Readonly<Record<string, Asset>> = {};
