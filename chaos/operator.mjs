// Calls the library as an operator would, with an instance that does not start.

/** @param {string} database */
export async function pauseSchedules(database) {
  await withHoldfast(database, async (holdfast) => {
    const { schedules } = await holdfast.schedules.list({ limit: 1_000 });
    for (const { name } of schedules) await holdfast.schedules.pause(name);
  });
}

/** Returns the findings of `holdfast check`. @param {string} database @returns {Promise<{ check: string, message: string }[]>} */
export async function ownCheck(database) {
  const { checks } = await withHoldfast(database, (holdfast) => holdfast.check());
  return checks
    .filter((/** @type {any} */ { ok }) => !ok)
    .map((/** @type {any} */ each) => ({ check: "check", message: JSON.stringify(each) }));
}

/** @param {string} database @param {(holdfast: any) => Promise<any>} use */
async function withHoldfast(database, use) {
  const library = await import(new URL("../build/index.js", import.meta.url).href);
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const holdfast = new library.Holdfast({ database, logger });
  try {
    return await use(holdfast);
  } finally {
    await holdfast.stop({ grace: 0 });
  }
}
