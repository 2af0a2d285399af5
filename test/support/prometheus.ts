// Prometheus's own tool, where the machine has it. Where it has not, that is said, and not quietly.

import { execFile, spawnSync } from "node:child_process";
import parsePrometheusTextFormat from "parse-prometheus-text-format";

/** Whether it is there; says so loudly if not, since what it would have checked is not checked then. */
export function hasTool(name: string, of: string): boolean {
  const isThere = spawnSync("sh", ["-c", `command -v ${name}`]).status === 0;
  if (!isThere) console.warn(`NOT CHECKED: ${name} is not installed (${of}).`);
  return isThere;
}

/** Answers what it said; rejects if it complains. */
export function tool(name: string, args: readonly string[], input = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(name, [...args], (error, stdout, stderr) => {
      if (error) reject(new Error(`${name}: ${stdout}${stderr}`));
      else resolve(`${stdout}${stderr}`);
    });
    child.stdin?.end(input);
  });
}

/**
 * The samples of this name, labels and value. Read without the types: knowing of histograms, the parser
 * would put those of all labels together.
 */
export function samplesOf(text: string, name: string): Record<string, string | number>[] {
  const bare = text.replace(/^#.*\n/gm, "");
  const found = parsePrometheusTextFormat(bare).find((each) => each.name === name);
  return (found?.metrics ?? []).map(({ labels, value }) => ({ ...labels, value: Number(value) }));
}
