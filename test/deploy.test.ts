// The files in deploy/: they are well-formed, say what operators count on, and name no metric that is not
// there. Where the tools that read them are installed, those have the last word.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { METRICS } from "../src/telemetry/metric-names.js";
import { hasTool, tool } from "./support/prometheus.js";

const DEPLOY = path.resolve(import.meta.dirname, "../deploy");
const read = (name: string) => readFileSync(path.join(DEPLOY, name), "utf8");
const YAML_FILES = readdirSync(DEPLOY, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.ya?ml$/.test(name))
  .sort();

// biome-ignore lint/suspicious/noExplicitAny: these are somebody else's formats.
function documents(name: string): any[] {
  return parseAllDocuments(read(name), { merge: true }).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  });
}

test("every YAML file can be read", () => {
  expect(YAML_FILES.length).toBeGreaterThan(3);
  for (const name of YAML_FILES) expect(documents(name).length).toBeGreaterThan(0);
});

test("compose: two instances and a PostgreSQL; the tables are made first; a check each day", () => {
  const [{ services }] = documents("compose.yml");
  expect(Object.keys(services).sort()).toEqual(["app-1", "app-2", "check", "migrate", "postgres"]);
  for (const name of ["app-1", "app-2"]) {
    expect(services[name].depends_on.migrate.condition).toBe("service_completed_successfully");
    expect(services[name].environment.HOLDFAST_DATABASE_URL).toContain("@postgres:5432/");
    expect(Number.parseInt(services[name].stop_grace_period, 10)).toBeGreaterThan(30);
  }
  expect(services.check.command.join(" ")).toMatch(/main\.js check .*sleep 86400/s);
});

test("Kubernetes: three replicas with probes and time to stop, two of which always stay; a check each day", () => {
  const kinds = documents("kubernetes/holdfast.yaml");
  const of = (kind: string) => kinds.find((each) => each.kind === kind);
  const { replicas, template } = of("Deployment").spec;
  const [app] = template.spec.containers;
  expect(replicas).toBe(3);
  expect(app.livenessProbe.httpGet.path).toBe("/healthz");
  expect(app.readinessProbe.httpGet.path).toBe("/readyz");
  expect(app.lifecycle.preStop.exec.command).toEqual(["sleep", "5"]);
  expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThan(5 + 25 + 5);
  expect(template.spec.securityContext.runAsNonRoot).toBe(true);
  expect(of("PodDisruptionBudget").spec.minAvailable).toBe(2);
  const job = of("CronJob").spec;
  expect(job.schedule).toMatch(/^\d+ \d+ \* \* \*$/);
  expect(job.jobTemplate.spec.template.spec.containers[0].command).toContain("check");
});

test("every metric that the rules and the dashboard name exists", () => {
  const named = ["prometheus/alerts.yml", "grafana/holdfast.json"].flatMap((name) =>
    [...read(name).matchAll(/\bholdfast_[a-z_]+/g)].map(([metric]) => metric),
  );
  const known = new Set(
    Object.entries(METRICS).flatMap(([name, { type }]) =>
      type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test("the dashboard is JSON whose panels do not lie on one another", () => {
  const { panels } = JSON.parse(read("grafana/holdfast.json"));
  const places = panels.map(({ gridPos: { x, y } }: { gridPos: { x: number; y: number } }) =>
    [x, y].join(),
  );
  expect(new Set(places).size).toBe(panels.length);
});

test("Prometheus accepts the alert rules", async () => {
  if (!hasTool("promtool", "deploy/prometheus/alerts.yml")) return;
  const said = await tool("promtool", [
    "check",
    "rules",
    path.join(DEPLOY, "prometheus/alerts.yml"),
  ]);
  expect(said).toMatch(/SUCCESS: \d+ rules found/);
});

test("systemd accepts the units, and the check runs daily", async () => {
  expect(read("systemd/holdfast-check.timer")).toMatch(/^OnCalendar=\*-\*-\* /m);
  expect(read("systemd/holdfast-check.service")).toMatch(/main\.js check/);
  if (!hasTool("systemd-analyze", "deploy/systemd")) return;
  const units = readdirSync(path.join(DEPLOY, "systemd")).map((name) =>
    path.join(DEPLOY, "systemd", name),
  );
  const said = await tool("systemd-analyze", ["verify", "--man=no", ...units]);
  expect(said).not.toMatch(/deploy\/systemd/);
});

test("every action of the workflows is pinned by the hash of a commit", () => {
  const folder = path.resolve(import.meta.dirname, "../.github/workflows");
  const uses = readdirSync(folder).flatMap((name) => [
    ...readFileSync(path.join(folder, name), "utf8").matchAll(/^\s*- uses: (.*)$/gm),
  ]);
  expect(uses.length).toBeGreaterThan(3);
  for (const [, action] of uses) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d/);
});

test("a release comes with a bill of materials", () => {
  const workflow = path.resolve(import.meta.dirname, "../.github/workflows/release.yml");
  const text = readFileSync(workflow, "utf8");
  expect(text).toContain("npm sbom --sbom-format cyclonedx --package-lock-only > sbom.cdx.json");
  expect(text).toMatch(/gh release create .* sbom\.cdx\.json/);
});

test("SECURITY.md states response times, supported versions and tenancy, and the production checklist names sslmode=verify-full", () => {
  const document = (name: string) => readFileSync(path.join(DEPLOY, "..", name), "utf8");
  const section = (text: string, title: string) =>
    text.split(/^## /m).find((each) => each.startsWith(`${title}\n`)) ?? "";
  const security = document("SECURITY.md");
  const reporting = section(security, "Reporting");
  expect(reporting).toMatch(/^\| somebody has read it .*\| \d+ working days \|$/m);
  expect(reporting).toMatch(/^\| a release that mends what is critical or high \| \d+ days /m);
  const versions = section(security, "Supported versions");
  expect(versions).toMatch(/newest minor version/);
  expect(versions).toMatch(/Node \d+\.\d+/);
  expect(section(security, "Tenants")).toMatch(/One database .* belongs to one tenant/s);
  const checklist = document("docs/guides/production.md");
  expect(checklist).toMatch(/^\| `sslmode=verify-full` /m);
});
