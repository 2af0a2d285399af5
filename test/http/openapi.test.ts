// The OpenAPI description as strangers use it: a validator accepts it, and clients that two generators
// make from it compile under strict TypeScript and call a running instance.

import { execFile } from "node:child_process";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Served, serve } from "../../src/http/server.js";
import { type House, newHouse, SECRETS } from "./house.js";

const ROOT = path.resolve(import.meta.dirname, "../..");
const MODULES = path.join(ROOT, "node_modules");

// biome-ignore lint/suspicious/noExplicitAny: the description is whatever the server says.
type Description = any;

let house: House;
let served: Served;
let folder: string;
let file: string;
let description: Description;

beforeAll(async () => {
  house = await newHouse("sqlite");
  house.holdfast.job("study", { run: () => undefined });
  served = await serve({ handler: house.httpHandler, host: "127.0.0.1", port: 0 });
  folder = await fs.mkdtemp(path.join(os.tmpdir(), "holdfast-openapi-"));
  await fs.symlink(MODULES, path.join(folder, "node_modules"));
  file = path.join(folder, "openapi.json");
  const answer = await fetch(`${served.url}/openapi.json`);
  const text = await answer.text();
  await fs.writeFile(file, text);
  description = JSON.parse(text);
});
afterAll(async () => {
  await served.close();
  await house.end();
  await fs.rm(folder, { recursive: true, force: true });
});

/** A program of a development dependency, by its path in the package; throws what it printed if it fails. */
async function program(script: string, ...given: string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [path.join(MODULES, script), ...given], {
    cwd: folder,
  }).catch(({ stdout, stderr }) => {
    throw new Error(`${script} failed:\n${stdout}\n${stderr}`.slice(0, 4_000));
  });
}

function operations(): [string, Description][] {
  return Object.entries<Description>(description.paths).flatMap(([where, methods]) =>
    Object.entries<Description>(methods).map(
      ([method, each]) => [`${method.toUpperCase()} ${where}`, each] as [string, Description],
    ),
  );
}

describe("the OpenAPI description", () => {
  test("is one that a validator accepts", async () => {
    await program("@seriousme/openapi-schema-validator/bin/validate-api-cli.js", file);
  });

  test("has no reference that leads nowhere", () => {
    const references = [...JSON.stringify(description).matchAll(/"\$ref":"([^"]+)"/g)];
    expect(references.length).toBeGreaterThan(100);
    for (const [, reference = ""] of references) {
      const steps = reference.replace(/^#\//, "").split("/");
      const found = steps.reduce((at, step) => at?.[step], description);
      expect(found, reference).toBeDefined();
    }
  });

  test("keeps each named schema once, and no definitions inside others", () => {
    expect(Object.keys(description.components.schemas)).toEqual(
      expect.arrayContaining(["Run", "Schedule", "Tick", "Problem", "StoredError", "Job"]),
    );
    expect(JSON.stringify(description)).not.toContain("$defs");
  });

  test("requires a body exactly where a call without one is refused", async () => {
    const bodies = operations().filter(([, { requestBody }]) => requestBody);
    for (const [where, { requestBody, "x-scope": scope }] of bodies) {
      const [method = "", pattern = ""] = where.split(" ");
      const { status, body } = await house.ask(method, pattern.replace(/\{\w+\}/g, "x"), {
        secret: scope === "open" ? null : SECRETS.admin,
      });
      const isRefused = status === 400 && body.error === "body_invalid";
      expect([where, requestBody.required]).toEqual([where, isRefused]);
    }
    expect(bodies.filter(([, { requestBody }]) => requestBody.required).length).toBeGreaterThan(5);
  });

  test("names the refusals of each operation, with the schema of a problem", () => {
    const statuses = new Map(
      operations().map(([where, { responses }]) => [
        where,
        Object.keys(responses).filter((status) => status.startsWith("4")),
      ]),
    );
    const secured = ["401", "403", "429"];
    const sized = ["408", "413", "415"];
    expect(statuses.get("GET /healthz")).toEqual([]);
    expect(statuses.get("GET /api/queues")).toEqual(secured);
    // 409: the part of an id fits several runs.
    expect(statuses.get("GET /api/runs/{id}")).toEqual(["400", "401", "403", "404", "409", "429"]);
    expect(statuses.get("POST /api/jobs/{name}/runs")).toEqual(
      ["400", "404", "409", ...secured, ...sized].sort(),
    );
    for (const [where, { responses }] of operations()) {
      for (const [status, { $ref: reference }] of Object.entries<Description>(responses)) {
        if (!status.startsWith("4") && status !== "500") continue;
        const answer = description.components.responses[String(reference).split("/").at(-1) ?? ""];
        expect(answer?.content["application/problem+json"].schema, where).toEqual({
          $ref: "#/components/schemas/Problem",
        });
      }
    }
  });
});

describe("a client that is generated from it compiles under strict TypeScript and makes calls", () => {
  test("with oazapfts", async () => {
    await program("oazapfts/dist/cli.js", file, path.join(folder, "functions.ts"));
    const { calls } = await compiled(
      "functions-user.ts",
      `import * as api from "./functions.js";
       export async function calls(url: string, secret: string) {
         api.defaults.baseUrl = url;
         api.defaults.headers = { authorization: \`Bearer \${secret}\` };
         const made = await api.enqueue("study", { input: { n: 1 }, tags: ["eu"] });
         if (made.status !== 201) throw new Error(\`enqueue: \${made.status}\`);
         const id: string = made.data.id;
         const got = await api.getRun(id);
         if (got.status !== 200) throw new Error(\`getRun: \${got.status}\`);
         const tags: string[] = got.data.tags;
         const put = await api.putSchedule("nightly", { job: "study", every: "1h" });
         if (put.status !== 200) throw new Error(\`putSchedule: \${put.status}\`);
         const none = await api.getRun("01890000-0000-7000-8000-000000000000");
         const error: string = none.status === 404 ? none.data.error : "none";
         return { id, tags, status: got.data.status, schedule: put.data.schedule.name, error };
       }`,
    );
    expect(await calls(served.url, SECRETS.admin)).toMatchObject({
      tags: ["eu"],
      status: "pending",
      schedule: "nightly",
      error: "run_not_found",
    });
  });

  test("with openapi-typescript-codegen", async () => {
    const into = path.join(folder, "services");
    await program("openapi-typescript-codegen/bin/index.js", "--input", file, "--output", into);
    const { calls } = await compiled(
      "services-user.ts",
      `import { ApiError, DefaultService as api, OpenAPI, type Run } from "./services";
       export async function calls(url: string, secret: string) {
         OpenAPI.BASE = url;
         OpenAPI.TOKEN = secret;
         const made = await api.enqueue("study", { input: { n: 1 }, tags: ["eu"] });
         const run: Run = await api.getRun(made.id);
         const tags: string[] = run.tags;
         const put = await api.putSchedule("hourly", undefined, { job: "study", every: "1h" });
         const error: unknown = await api.getRun("01890000-0000-7000-8000-000000000000").then(
           () => "none",
           (thrown: unknown) => thrown instanceof ApiError ? thrown.body.error : thrown,
         );
         return { id: made.id, tags, status: run.status, schedule: put.schedule.name, error };
       }`,
    );
    expect(await calls(served.url, SECRETS.admin)).toMatchObject({
      tags: ["eu"],
      status: "pending",
      schedule: "hourly",
      error: "run_not_found",
    });
  });
});

type User = { calls(url: string, secret: string): Promise<unknown> };

/** Checks a program and the client that it uses by the compiler, then loads it. */
async function compiled(name: string, text: string): Promise<User> {
  const source = path.join(folder, name);
  const config = path.join(folder, `${name}.json`);
  await fs.writeFile(source, text);
  await fs.writeFile(config, JSON.stringify({ compilerOptions: STRICT, files: [name] }));
  await program("typescript/bin/tsc", "-p", config);
  const outfile = path.join(folder, `${name}.mjs`);
  await build({
    entryPoints: [source],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    logLevel: "silent",
  });
  return import(/* @vite-ignore */ outfile);
}

const STRICT = {
  strict: true,
  noEmit: true,
  noUncheckedIndexedAccess: true,
  target: "es2022",
  module: "esnext",
  moduleResolution: "bundler",
  lib: ["es2022", "dom", "dom.iterable"],
  types: [],
};
