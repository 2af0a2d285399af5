// `npm run example`: what it lists is what the documents tell readers to type.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");

test("without a name, or with a wrong one, it lists the commands that the examples' own pages begin with", () => {
  const asked = ask();
  expect(asked).toMatchObject({ status: 2, stdout: "" });
  expect(asked.stderr).toMatch(/^Which example\? These are:\n/);
  expect(ask("nonsense").stderr).toMatch(/^There is no example nonsense to run\. These are:\n/);
  const names = [...asked.stderr.matchAll(/^ {2}npm run example (\S+)$/gm)].map(([, name]) => name);
  expect(names).toHaveLength(5);
  for (const name of names) {
    const page = readFileSync(path.join(root, "examples", `${name}`, "README.md"), "utf8");
    expect(page).toMatch(new RegExp(`^\`\`\`sh\nnpm run example ${name} +#`, "m"));
    expect(page).toMatch(new RegExp(`^\\w+=postgres://\\S+ npm run example ${name} +#`, "m"));
  }
});

function ask(...args: string[]) {
  return spawnSync(process.execPath, [path.join(root, "scripts", "example.mjs"), ...args], {
    encoding: "utf8",
  });
}
