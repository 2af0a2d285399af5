// Crontabs as people have them: what becomes of every line.

import { expect, test } from "vitest";
import { readCrontab } from "./crontab.js";

const own = (text: string) => readCrontab(text, { hasUser: false });

test("a line is an expression and a command", () => {
  expect(own("15  2\t* * mon-fri   pg_dump app > /backups/app.dump").entries).toEqual([
    {
      line: 1,
      cron: "15 2 * * mon-fri",
      timezone: null,
      script: "pg_dump app > /backups/app.dump",
      shell: "/bin/sh",
      folder: null,
      env: {},
      user: null,
      comments: [],
    },
  ]);
});

test("settings hold for the lines below them", () => {
  const { entries } = own(`0 1 * * * first
CRON_TZ=Europe/Paris
SHELL=/bin/bash
HOME = "/srv/app"
PATH='/usr/local/bin:/bin'
0 2 * * * second`);
  expect(entries[0]).toMatchObject({ timezone: null, shell: "/bin/sh", folder: null, env: {} });
  expect(entries[1]).toMatchObject({
    timezone: "Europe/Paris",
    shell: "/bin/bash",
    folder: "/srv/app",
    env: { PATH: "/usr/local/bin:/bin" },
  });
});

test("lines without a counterpart are listed with the reason", () => {
  const { entries, notes } = own(`MAILTO=ops@example.com
@reboot /usr/bin/warm-up
@daily rotate
-0 * * * * quiet
nonsense`);
  expect(entries.map(({ cron, script }) => [cron, script])).toEqual([
    ["@daily", "rotate"],
    ["0 * * * *", "quiet"],
  ]);
  expect(notes.map(({ line, why }) => [line, why])).toEqual([
    [1, expect.stringMatching(/^no mail is sent: output is kept with each run/)],
    [2, expect.stringMatching(/^@reboot is no time: have the service manager start it/)],
    [4, "the leading - (no log line) has no counterpart"],
    [5, "it is neither a setting nor five time fields and a command"],
  ]);
});

test("a percent sign begins the input, an escaped one is one", () => {
  const [entry] = own("0 0 * * * mail -s it\\%s ada%Dear Ada,%it's late").entries;
  expect(entry?.script).toBe(`printf '%s\\n' 'Dear Ada,' 'it'\\''s late' | { mail -s it%s ada\n}`);
});

test("the user of a system's crontab is named, not taken for the command", () => {
  const { entries, notes } = readCrontab("17 * * * * root cd / && run-parts /etc/cron.hourly", {
    hasUser: true,
  });
  expect(entries).toMatchObject([{ user: "root", script: "cd / && run-parts /etc/cron.hourly" }]);
  expect(notes).toMatchObject([{ line: 1, why: expect.stringMatching(/not as root/) }]);
});

test("the comment above a line stays with it", () => {
  const { entries } = own(
    "# about nothing\n\n# Nightly backup\n#  of the app\n0 2 * * * backup\n0 3 * * * other",
  );
  expect(entries.map(({ comments }) => comments)).toEqual([["Nightly backup", " of the app"], []]);
});
