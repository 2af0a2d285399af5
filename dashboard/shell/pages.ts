// The list of pages. `g` and the letter open a page by keyboard.

export const PAGES = [
  {
    name: "work",
    pages: [
      { path: "/", name: "Overview", key: "o" },
      { path: "/schedules", name: "Schedules", key: "s" },
      { path: "/runs", name: "Runs", key: "r" },
      { path: "/alerts", name: "Alerts", key: "e" },
    ],
  },
  {
    name: "machinery",
    pages: [
      { path: "/queues", name: "Queues", key: "q" },
      { path: "/locks", name: "Locks", key: "l" },
      { path: "/instances", name: "Instances", key: "i" },
      { path: "/check", name: "Check", key: "c" },
      { path: "/audit", name: "Audit", key: "a" },
      { path: "/settings", name: "Settings", key: "t" },
    ],
  },
] as const;
