// Follows the tutorial literally in an empty folder: every block marked `<!-- write: … -->` becomes that file, and a
// shell runs every block marked `<!-- do -->`, one after the other. Only one step differs from the reader's:
// `npm install holdfast` installs the package that was packed here.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const STEP = /^<!-- (?:write: (?<file>\S+)|do) -->\n```\w+\n(?<text>[\s\S]*?)^```$/gm;
const STEP_MS = 900_000;

/**
 * @param {{ page: string, folder: string, tarball: string, env: NodeJS.ProcessEnv }} params
 * @returns {string} all that the commands said
 */
export function doTutorial({ page, folder, tarball, env }) {
  let said = "";
  try {
    for (const { groups } of fs.readFileSync(page, "utf8").matchAll(STEP)) {
      const text = groups?.text ?? "";
      if (groups?.file) fs.writeFileSync(path.join(folder, groups.file), text);
      else said += shell(text.replace("npm install holdfast", `npm install "${tarball}"`));
    }
  } finally {
    endLast();
  }
  return said;

  /** @param {string} script */
  function shell(script) {
    const ended = spawnSync("sh", ["-e", "-c", script], {
      cwd: folder,
      env: { ...env, npm_config_prefer_offline: "true", npm_config_fund: "false" },
      encoding: "utf8",
      timeout: STEP_MS,
    });
    if (ended.status === 0) return ended.stdout;
    const why = ended.error?.message ?? `${said}${ended.stdout}${ended.stderr}`;
    throw new Error(`The tutorial does not work at\n${script}\n${why}`);
  }

  /** A step that fails leaves the instance of the step before behind. */
  function endLast() {
    const file = path.join(folder, "holdfast.pid");
    if (!fs.existsSync(file)) return;
    try {
      process.kill(Number(fs.readFileSync(file, "utf8")), "SIGKILL");
    } catch {
      // The process has ended, as it should.
    }
  }
}
