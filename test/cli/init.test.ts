// Tests `init`: the written project runs; existing files are never overwritten; a crontab becomes schedules, and lines
// without a counterpart are listed.

import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openTerminal, type Terminal } from "./terminal.js";

const ROOT = path.resolve(import.meta.dirname, "../..");

let terminal: Terminal;
beforeEach(() => {
  terminal = openTerminal();
});
afterEach(() => terminal.close());

const read = (name: string) => readFileSync(path.join(terminal.folder, name), "utf8");

/** As `npm install` would: the built package, under its name. */
function install(...names: string[]): void {
  const modules = path.join(terminal.folder, "node_modules");
  mkdirSync(modules, { recursive: true });
  for (const name of ["holdfast", ...names]) {
    const target = name === "holdfast" ? ROOT : path.join(ROOT, "node_modules", name);
    symlinkSync(target, path.join(modules, name));
  }
}

test("an empty folder gets a project that runs under dev and under start", async () => {
  const { code, stdout, stderr } = await terminal.holdfast(["init"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toBe(`wrote  holdfast.config.mjs
wrote  .env.example
wrote  package.json
wrote  .gitignore

Next: npm install && npx holdfast dev
`);
  expect(JSON.parse(read("package.json"))).toMatchObject({
    private: true,
    type: "module",
    scripts: { dev: "holdfast dev", start: "holdfast start" },
    dependencies: { holdfast: expect.stringMatching(/^\^\d/) },
  });
  expect(read(".gitignore")).toBe("node_modules/\n.holdfast/\n.env\n");
  expect(read(".env.example")).toBe(readFileSync(path.join(ROOT, ".env.example"), "utf8"));
  install();
  for (const command of ["dev", "start"]) {
    const session = terminal.begin([command]);
    await session.line(/✓ hello +run completed/);
    session.child.kill("SIGTERM");
    expect(await session.ended).toMatchObject({ code: 0 });
  }
  const { stdout: list } = await terminal.holdfast(["runs", "list", "--json"]);
  expect(JSON.parse(list).runs[0]).toMatchObject({
    job: "hello",
    schedule: "hello-world",
    result: { said: "Hello world!" },
  });
});

test("a TypeScript project gets a TypeScript file that runs, and its own files stay", async () => {
  const manifest = {
    name: "shop",
    type: "module",
    scripts: { dev: "vite", test: "vitest" },
    devDependencies: { typescript: "^5.0.0", tsx: "^4.0.0" },
  };
  terminal.write({
    "package.json": JSON.stringify(manifest, null, "\t"),
    ".gitignore": "dist",
    ".env.example": "SHOP=1\n",
  });
  const { code, stdout } = await terminal.holdfast(["init", "--json"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    written: ["holdfast.config.ts"],
    changed: [
      {
        file: "package.json",
        added: ["script holdfast:dev", "script start", "dependency holdfast"],
      },
      { file: ".gitignore", added: [".holdfast/", ".env"] },
    ],
    kept: [".env.example"],
    next: ["npm install", "npx holdfast dev"],
  });
  expect(read(".gitignore")).toBe("dist\n.holdfast/\n.env\n");
  expect(read(".env.example")).toBe("SHOP=1\n");
  expect(read("package.json")).toMatch(
    /^\{\n\t"name": "shop",\n\t"type": "module",\n\t"scripts": \{\n\t\t"dev": "vite",/,
  );
  install("tsx");
  const session = terminal.begin(["start"]);
  await session.line(/✓ hello +run completed/);
});

test("a CommonJS project gets a file that it can load", async () => {
  terminal.write({
    "package.json": JSON.stringify({ name: "old", devDependencies: { typescript: "^5.0.0" } }),
  });
  const { stdout } = await terminal.holdfast(["init", "--json"]);
  expect(JSON.parse(stdout).written).toContain("holdfast.config.mjs");
  install();
  expect(await terminal.holdfast(["tick"])).toMatchObject({ code: 0, stderr: "" });
});

test("a project that is there is not written over, unless asked", async () => {
  terminal.write({ "holdfast.config.mjs": "// mine\n" });
  const refused = await terminal.holdfast(["init"]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(
    /There is holdfast\.config\.mjs already; nothing was written\. --force/,
  );
  expect(read("holdfast.config.mjs")).toBe("// mine\n");
  expect(existsSync(path.join(terminal.folder, "package.json"))).toBe(false);
  expect(await terminal.holdfast(["init", "--force"])).toMatchObject({ code: 0 });
  expect(read("holdfast.config.mjs")).toMatch(/holdfast\.job\("hello"/);
  terminal.write({ "tsconfig.json": "{}" });
  const beside = await terminal.holdfast(["init", "--force"]);
  expect(beside).toMatchObject({ code: 1 });
  expect(beside.stderr).toMatch(/There is holdfast\.config\.mjs, which would be taken/);
});

const CRONTAB = `# m h dom mon dow command
MAILTO=ops@example.com
CRON_TZ=Europe/Paris

# Says hello
# every second of the test
* * * * * echo "hello $WHO" | tee -a said.txt
@reboot /usr/bin/warm-up
0~30 4 * * * spread
WHO=cron
30 2 * * mon-fri cd /srv && /usr/local/bin/backup.sh --all
0 5 * * * cat > mail.txt%Dear Ada,%it's late
`;

test("a crontab becomes schedules, and every line that does not is named", async () => {
  terminal.write({ crontab: CRONTAB });
  const { code, stdout } = await terminal.holdfast(["init", "--from-crontab", "crontab"]);
  expect(code).toBe(0);
  expect(stdout.split("\n").slice(4)).toEqual([
    "line 7: schedule echo, * * * * *, Europe/Paris",
    "line 11: schedule backup, 30 2 * * mon-fri, Europe/Paris",
    "line 12: schedule cat, 0 5 * * *, Europe/Paris",
    expect.stringMatching(/^line 2 \(MAILTO=ops@example\.com\): no mail is sent/),
    expect.stringMatching(/^line 8 \(@reboot \/usr\/bin\/warm-up\): @reboot is no time/),
    expect.stringMatching(/^line 9 \(0~30 4 \* \* \* …\): cron/),
    "",
    "Next: npm install && npx holdfast dev",
    "",
  ]);
  expect(read("holdfast.config.mjs").split("shell: {")[1]).toMatchSnapshot();
});

test("the project made from a crontab runs", async () => {
  // A line of every second would be no crontab's, so the file is made to tick sooner.
  const input =
    'WHO=you\n* * * * * echo "hello $WHO" >> said.txt; cat >> said.txt%from 100\\%%Ada\'s\n';
  const { code } = await terminal.holdfast(["init", "--from-crontab", "-"], { input });
  expect(code).toBe(0);
  install();
  terminal.write({
    "holdfast.config.mjs": read("holdfast.config.mjs").replace(
      /cron: "\* \* \* \* \*"/,
      'every: "1s"',
    ),
  });
  const session = terminal.begin(["start"]);
  await session.line(/✓ shell +run completed/);
  session.child.kill("SIGTERM");
  await session.ended;
  expect(read("said.txt")).toMatch(/^hello you\nfrom 100%\nAda's\n/);
});

test("a crontab of the system has users", async () => {
  terminal.write({ system: "17 * * * * root run-parts /etc/cron.hourly\n" });
  const args = ["init", "--from-crontab", "system", "--with-user", "--json"];
  const { stdout } = await terminal.holdfast(args);
  expect(JSON.parse(stdout)).toMatchObject({
    schedules: [{ name: "run-parts", cron: "17 * * * *", line: 1 }],
    notes: [{ line: 1, why: expect.stringMatching(/not as root/) }],
  });
});

test("a crontab without lines, or none at all, writes nothing", async () => {
  terminal.write({ empty: "# nothing\n@reboot x\n" });
  const empty = await terminal.holdfast(["init", "--from-crontab", "empty"]);
  expect(empty).toMatchObject({ code: 3, stdout: "" });
  expect(empty.stderr).toMatch(
    /No line of the crontab can become a schedule.*\nline 2 \(@reboot x\)/,
  );
  const missing = await terminal.holdfast(["init", "--from-crontab", "missing"]);
  expect(missing).toMatchObject({ code: 3 });
  expect(missing.stderr).toMatch(/missing could not be read \(ENOENT\)\. Give a file, or -/);
  expect(existsSync(path.join(terminal.folder, "package.json"))).toBe(false);
});
