// Lists the actions of people on the list of runs, each with the sign by which the page shows that it is done. `ready` runs
// before and is not timed; `isThere` runs in the page.

const FULL = 10;
const shows = (test) => `(() => { const rows = shownRuns(); return ${test}; })()`;
const hasRows = `rows.length >= ${FULL}`;

const filter = (name, status) => ({
  name,
  act: (page) => page.getByRole("button", { name: status, exact: true }).click(),
  isThere: shows(
    status === "all"
      ? `${hasRows} && rows.some(({ text }) => text.includes("completed"))`
      : `${hasRows} && rows.every(({ text }) => text.includes("${status}"))`,
  ),
});

const chooseJob = (name, job) => ({
  name,
  act: (page) => page.getByRole("combobox", { name: "Job" }).selectOption(job),
  isThere: shows(
    job === ""
      ? `${hasRows} && !location.search.includes("job") && !rows.some(({ text }) => text.includes("market-study"))`
      : `${hasRows} && rows.every(({ text }) => text.includes("${job}"))`,
  ),
});

const scroll = (name, by) => ({
  name,
  ready: (page) => page.evaluate(`window.before = shownRuns().map(({ id }) => id)`),
  act: (page) => page.mouse.wheel(0, by),
  isThere: shows(`${hasRows} && rows[5] && rows[5].id !== before[5]`),
});

const open = (name, nth) => ({
  name,
  ready: async (page) => {
    await page.locator("[data-run]").nth(nth).getByRole("link").hover();
    await page.evaluate(`window.scrollTo(0, 0)`);
  },
  act: (page) => page.locator("[data-run]").nth(nth).getByRole("link").click(),
  isThere: `location.pathname.split("/").length > 2 && [...document.querySelectorAll("h2")].some(({ textContent }) => textContent === "Facts")`,
});

const back = {
  name: "go back to the list",
  act: (page) => page.evaluate(`history.back()`),
  isThere: shows(hasRows),
};

const SEARCH = `document.querySelector("[data-search]")`;

/** One round of them; ten. */
export const ROUND = [
  scroll("scroll by a screen", 700),
  scroll("scroll by a screen", 700),
  filter("filter by status", "failed"),
  filter("filter by status", "all"),
  chooseJob("filter by job", "market-study"),
  chooseJob("filter by job", ""),
  open("open a run", 2),
  back,
  open("open a run", 3),
  {
    name: "type a letter into the text filter",
    ready: async (page) => {
      await page.evaluate(`history.back()`);
      await page.locator("[data-run]").nth(FULL).waitFor();
      await page.getByRole("searchbox", { name: /Search input/ }).focus();
      await page.evaluate(`window.before = ${SEARCH}.value`);
    },
    act: (page) => page.keyboard.press("7"),
    isThere: `${SEARCH}.value !== before`,
  },
];

/** Not part of the goal: the list follows the text after a short pause in typing, which is waited for on purpose. */
export const NARROWED = {
  name: "text filter, from the last key to the narrowed list",
  ready: async (page) => {
    const box = page.getByRole("searchbox", { name: /Search input/ });
    await box.fill("");
    await page.waitForURL((url) => !url.search.includes("text"));
    await page.locator("[data-run]").nth(FULL).waitFor();
    await box.pressSequentially("nl/7777", { delay: 20 });
  },
  act: (page) => page.keyboard.press("7"),
  isThere: shows(`rows.length > 0 && rows.every(({ text }) => text.includes("nl/77777"))`),
};
