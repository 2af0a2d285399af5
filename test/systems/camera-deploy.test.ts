// The camera system's compose and Kubernetes files: they build on deploy/, say what operators count on, and name
// nothing that is not there. That the image's command starts an instance is shown in camera-processes.test.ts.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { EXAMPLES } from "./places.js";

const ROOT = path.dirname(EXAMPLES);
const HERE = path.join(EXAMPLES, "camera-snapshots");
const read = (...parts: string[]) => readFileSync(path.join(...parts), "utf8");
/** Without its folder, the words of a program that must exist. */
const programs = (words: readonly string[]) =>
  words
    .map((word) => word.replace("node_modules/holdfast/", ""))
    .filter((word) => /\.(ts|js)$/.test(word));

// biome-ignore lint/suspicious/noExplicitAny: these are somebody else's formats.
type Any = any;

test("compose: three instances share one SQLite file and its volume, with locks on; PostgreSQL and Redis on demand", () => {
  const { services, volumes } = parse(read(HERE, "compose.yml"), { merge: true });
  const instances = ["instance-1", "instance-2", "instance-3"].map((name) => services[name]);
  for (const { environment, volumes, stop_grace_period: grace, build } of instances) {
    expect(environment.HOLDFAST_DATABASE_URL).toContain("sqlite:/data/");
    expect(environment.HOLDFAST_LOCKING_ENABLED).toBe("true");
    expect(environment).toMatchObject({
      HOLDFAST_LOCK_LEASE: "6m",
      HOLDFAST_HISTORY_RETENTION_DAYS: "30",
    });
    expect(volumes).toEqual(["data:/data"]);
    expect(Number.parseInt(grace, 10)).toBeGreaterThan(30);
    expect(existsSync(path.resolve(HERE, build.context, build.dockerfile))).toBe(true);
  }
  expect(new Set(instances.map(({ ports }) => ports[0])).size).toBe(3);
  expect(volumes).toHaveProperty("data");
  const { file, service } = services.postgres.extends;
  expect(parse(read(HERE, file), { merge: true }).services).toHaveProperty(service);
  expect([services.postgres.profiles, services.redis.profiles]).toEqual([["postgres"], ["redis"]]);
  for (const each of programs(services.cameras.command))
    expect(existsSync(path.join(ROOT, each))).toBe(true);
});

test("Kubernetes: the three replicas of deploy/, on PostgreSQL, with this system's image, cameras and pictures", () => {
  const folder = path.join(HERE, "kubernetes");
  const { resources, images, patches } = parse(read(folder, "kustomization.yaml"));
  const base = path.join(folder, resources[0]);
  const bases = parse(read(base, "kustomization.yaml")).resources as string[];
  const kinds = [
    ...bases.map((name) => read(base, name)),
    ...resources.slice(1).map((name: string) => read(folder, name)),
  ].flatMap((text) => parseAllDocuments(text).map((each) => structuredClone(each.toJS()) as Any));
  const [{ target, patch }] = patches;
  const deployment = JSON.parse(
    JSON.stringify(
      kinds.find(({ kind, metadata }) => kind === target.kind && metadata.name === target.name),
    ),
  );
  for (const each of parse(patch)) add(deployment, each);
  expect(deployment.spec.replicas).toBe(3);
  const { containers, volumes } = deployment.spec.template.spec;
  const [{ env, image, volumeMounts }] = containers;
  expect(image.split(":")[0]).toBe(images[0].name);
  const variables = Object.fromEntries(
    env.map(({ name, value, valueFrom }: Any) => [name, value ?? valueFrom.secretKeyRef.key]),
  );
  expect(variables).toMatchObject({
    HOLDFAST_DATABASE_URL: "database-url",
    HOLDFAST_LOCKING_ENABLED: "true",
    HOLDFAST_LOCK_LEASE: "6m",
    CAMERAS_URL: expect.any(String),
    DATA_FOLDER: volumeMounts[0].mountPath,
  });
  expect(JSON.stringify(kinds)).not.toContain("sqlite");
  const claim = kinds.find(({ kind }) => kind === "PersistentVolumeClaim");
  expect(volumes).toEqual([
    { name: volumeMounts[0].name, persistentVolumeClaim: { claimName: claim.metadata.name } },
  ]);
});

test("the image has what the commands of deploy/ start, and runs without root", () => {
  const dockerfile = read(HERE, "Dockerfile");
  expect(dockerfile).toMatch(/^USER node$/m);
  expect(dockerfile).toContain("ln -s .. node_modules/holdfast");
  const [, list = ""] = /^CMD (\[.+\])$/m.exec(dockerfile) ?? [];
  const [, shared = ""] = /^CMD (\[.+\])$/m.exec(read(ROOT, "deploy/Dockerfile")) ?? [];
  const [own, usual] = [JSON.parse(list) as string[], JSON.parse(shared) as string[]];
  expect(own.slice(0, -1)).toEqual(usual.slice(0, -1));
  for (const each of programs(own)) expect(existsSync(path.join(ROOT, each))).toBe(true);
});

test("every variable of .env.example is read, and every one that is read is in it", () => {
  const used = [...read(HERE, "holdfast.config.ts").matchAll(/env\.([A-Z_]+)/g)];
  const shown = [...read(HERE, ".env.example").matchAll(/^(?:# )?([A-Z_]+)=/gm)];
  const own = (names: (string | undefined)[]) =>
    [...new Set(names)].filter((name) => !name?.startsWith("HOLDFAST_")).sort();
  expect(own(shown.map(([, name]) => name))).toEqual(own(used.map(([, name]) => name)));
  const general = read(ROOT, ".env.example");
  for (const [, name] of shown)
    if (name?.startsWith("HOLDFAST_")) expect(general).toContain(`${name}=`);
});

/** A JSON patch of the one kind that is used: it adds, and the place to add to must be there. */
function add(to: Any, { op, path: where, value }: { op: string; path: string; value: unknown }) {
  expect(op).toBe("add");
  const keys = where.split("/").slice(1);
  const last = String(keys.pop());
  const place = keys.reduce((at, key) => at[key], to);
  if (last === "-") place.push(value);
  else {
    expect(place).not.toHaveProperty(last);
    place[last] = value;
  }
}
