// The house rules that no other tool checks, read from the syntax of every source file.
// One test per rule; a failure names file, line and what was found there.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseSync } from "vite";
import { expect, test } from "vitest";

type Node = { type: string; start: number; [key: string]: unknown };
type SourceFile = { name: string; text: string; program: Node };
type Finding = string | undefined;

const ROOT = path.resolve(import.meta.dirname, "..");
const SRC = filesIn("src");
const PAGE = filesIn("dashboard").filter(({ name }) => name !== "dashboard/vite.config.ts");
const PRODUCT = SRC.filter(({ name }) => !name.endsWith(".test.ts"));
const TESTS = [...filesIn("test"), ...SRC.filter(({ name }) => name.endsWith(".test.ts"))];

const TIMERS = ["setTimeout", "setInterval", "setImmediate"];
const CLOCKS = ["Date.now", "performance.now", "process.hrtime"];
const CHANCE = ["Math.random", "crypto.randomUUID", "crypto.getRandomValues"];
const TIMER_MODULES = ["node:timers", "node:timers/promises", "timers", "timers/promises"];
const RANDOM_IMPORTS = ["randomUUID", "randomBytes", "randomInt", "randomFillSync", "webcrypto"];
const SYNONYMS = ["task", "tasks", "payload", "payloads", "epoch", "epochs"];
const SQL_START =
  /^\s*(select\s.+\sfrom\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|with\s+\w+\s+as\s*\()/is;

const TAKEN = /^import \{ ([^}]+) \} from "(?:\.\.\/)+(?:build|dist)\/(.+)\.js";$/gm;

/** Test helpers that may wait for real time. Each needs a reason beside it. */
const MAY_WAIT: string[] = [
  // Gives promises and statements their turn between two steps of virtual time; waits for no time.
  "src/testing/virtual-clock.ts",
  // Looks again and again at what other processes do, which nobody here can be told of.
  "test/support/until.ts",
];

test("time, chance and the network are reached through src/shared/adapters alone", () => {
  const outside = PRODUCT.filter(({ name }) => !name.startsWith("src/shared/adapters/"));
  expect(find(outside, ambient)).toEqual([]);
});

test("SQL is written in src/store and src/testing alone", () => {
  const outside = PRODUCT.filter(({ name }) => !/^src\/(store|testing)\//.test(name));
  expect(
    find(outside, (node) => {
      const text = node.type === "Literal" ? node.value : templateText(node);
      return typeof text === "string" && SQL_START.test(text)
        ? text.trim().slice(0, 40)
        : undefined;
    }),
  ).toEqual([]);
});

test("every statement of a generator in src/store is handed over with yield*, or it would be lost", () => {
  const store = PRODUCT.filter(({ name }) => name.startsWith("src/store/"));
  expect(generatorsOf(store)).toContain("rows");
  expect(generatorsOf(store)).toContain("settle");
  expect(lostStatements(store)).toEqual([]);
});

test("a statement that a generator calls, returns, or hands to a callback without yield* is found", () => {
  const files = [
    ["sent", "const a = yield* rows(A); return yield* rows(B);"],
    ["called", "rows(A);"],
    ["yielded", "yield rows(A);"],
    ["kept", "const a = rows(A);"],
    ["returned", "return rows(A);"],
    ["chosen", "return isAsked ? rows(A) : [];"],
    ["in a callback", "ids.forEach((id) => rows(A, { id }));"],
    ["of a method", "this.settle(A);"],
    ["of a method, sent", "yield* this.settle(A);"],
  ].map(([name = "", body = ""]) => {
    const text = `function* rows() {} class C { *settle() {} } function* work() { ${body} }`;
    return { name, text, program: parseSync("a.ts", text).program as unknown as Node };
  });
  expect(lostStatements(files).map((finding) => finding.split(":")[0])).toEqual([
    ...["called", "yielded", "kept", "returned", "chosen", "in a callback", "of a method"],
  ]);
});

test("where parts are put together, none refers to one that is made below it", () => {
  const composing = [
    ...["instance/compose.ts", "worker/worker.ts", "http/handler.ts"],
    ...["store/postgres/store.ts", "store/sqlite/store.ts"],
  ].map((name) => `src/${name}`);
  const files = PRODUCT.filter(({ name }) => composing.includes(name));
  expect(files).toHaveLength(composing.length);
  expect(
    find(files, (block) => {
      if (block.type !== "BlockStatement") return;
      const made = new Map<string, number>();
      for (const statement of block.body as Node[])
        for (const { id } of (statement.declarations ?? []) as { id: Node }[])
          made.set(String(id.name), statement.start);
      let early: Finding;
      walk(block, ({ type, name, start }) => {
        if (type === "Identifier" && start < (made.get(String(name)) ?? 0)) early ??= String(name);
      });
      return early;
    }),
  ).toEqual([]);
});

test("nothing is typed any, exported by default or exported wholesale", () => {
  const banned = ["TSAnyKeyword", "ExportDefaultDeclaration", "ExportAllDeclaration"];
  expect(find([...SRC, ...PAGE], ({ type }) => (banned.includes(type) ? type : undefined))).toEqual(
    [],
  );
});

test("the page knows of the source the types of the wire alone", () => {
  expect(
    find(PAGE, (node) => {
      if (node.type !== "ImportDeclaration" && node.type !== "ExportNamedDeclaration") return;
      const source = String((node.source as Node | null)?.value ?? "");
      if (!source.includes("../src/")) return;
      const isType = node.importKind === "type" || node.exportKind === "type";
      return isType && /\/src\/http\/wire\//.test(source) ? undefined : source;
    }),
  ).toEqual([]);
});

test("every source file opens with a comment about its purpose", () => {
  const bare = [...SRC, ...PAGE].filter(({ text }) => !/^(#!.*\n)?\/[/*]/.test(text));
  expect(bare.map(({ name }) => name)).toEqual([]);
});

test("exported names keep to the vocabulary", () => {
  expect(
    find([...PRODUCT, ...PAGE], (node) => {
      const names = node.type === "ExportNamedDeclaration" ? exportedNames(node) : [];
      return names.find((name) => words(name).some((word) => SYNONYMS.includes(word)));
    }),
  ).toEqual([]);
});

test("no test is skipped, singled out or left for later", () => {
  expect(
    find(TESTS, (node) => {
      const callee = node.type === "CallExpression" ? dotted(node.callee) : undefined;
      return callee && /^(test|it|describe|suite)\b.*\.(skip|only|todo)$/.test(callee)
        ? callee
        : undefined;
    }),
  ).toEqual([]);
});

test("no test sleeps", () => {
  const files = TESTS.filter(({ name }) => !MAY_WAIT.includes(name));
  expect(find(files, (node) => timer(node))).toEqual([]);
});

/** Names of the functions and methods that make generators. */
function generatorsOf(files: SourceFile[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { program } of files)
    walk(program, (node) => {
      if (node.type === "FunctionDeclaration" && node.generator) names.add(dotted(node.id) ?? "");
      const { value } = node;
      if (node.type === "MethodDefinition" && isNode(value) && value.generator)
        names.add(dotted(node.key) ?? "");
    });
  return names;
}

/**
 * Calls of generators inside of a generator, but for those behind `yield*`, and calls whose result nobody takes. Outside of
 * a generator, a session gets a generator as an argument or as a result.
 */
function lostStatements(files: SourceFile[]): string[] {
  const generators = generatorsOf(files);
  const lost: string[] = [];
  const visit = (file: SourceFile, node: Node, parent: Node, isInside: boolean): void => {
    const name = node.type === "CallExpression" ? ownName(node.callee) : undefined;
    const isSent = parent.type === "YieldExpression" && parent.delegate === true;
    const isDropped = isInside || parent.type === "ExpressionStatement";
    if (name !== undefined && generators.has(name) && isDropped && !isSent) {
      const line = file.text.slice(0, node.start).split("\n").length;
      lost.push(`${file.name}:${line}: ${name}() without yield*`);
    }
    const isFunction = /^Function(Declaration|Expression)$/.test(node.type);
    const within = isFunction ? node.generator === true : isInside;
    for (const child of Object.values(node).flat())
      if (isNode(child)) visit(file, child, node, within);
  };
  for (const file of files) visit(file, file.program, file.program, false);
  return lost;
}

/** The name of a function, or of a method of `this`. */
function ownName(callee: unknown): string | undefined {
  if (!isNode(callee) || callee.type !== "MemberExpression") return dotted(callee);
  const { object, property } = callee;
  return isNode(object) && object.type === "ThisExpression" ? dotted(property) : undefined;
}

function filesIn(folder: string): SourceFile[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts"))
    .sort()
    .map((name) => {
      const text = readFileSync(path.join(ROOT, folder, name), "utf8");
      const { program } = parseSync(name, text);
      return { name: path.posix.join(folder, name), text, program: program as unknown as Node };
    });
}

function scriptsIn(folder: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".mjs") && !name.includes("node_modules"))
    .map((name) => path.posix.join(folder, name));
}

/** Every finding of `rule` in `files`, as `file:line: what`. */
function find(files: SourceFile[], rule: (node: Node) => Finding): string[] {
  return files.flatMap(({ name, text, program }) => {
    const findings: string[] = [];
    walk(program, (node) => {
      const what = rule(node);
      if (what) findings.push(`${name}:${text.slice(0, node.start).split("\n").length}: ${what}`);
    });
    return findings;
  });
}

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  if (node.type === "TSTypeQuery") return; // `typeof setTimeout` in a type starts no timer.
  for (const [key, value] of Object.entries(node)) {
    // The name after a dot or before a colon is somebody else's member, not the global of that name.
    if ((key === "property" || key === "key") && node.computed === false) continue;
    for (const child of Array.isArray(value) ? value : [value])
      if (isNode(child)) walk(child, visit);
  }
}

function ambient(node: Node): Finding {
  const name = dotted(node)?.replace(/^globalThis\./, "");
  if (name && [...CLOCKS, ...CHANCE].includes(name)) return name;
  if (node.type === "NewExpression" && dotted(node.callee) === "Date") {
    return (node.arguments as unknown[]).length === 0 ? "new Date()" : undefined;
  }
  if (
    node.type === "CallExpression" &&
    ["Date", "fetch", "globalThis.fetch"].includes(dotted(node.callee) ?? "")
  ) {
    return `${dotted(node.callee)}()`;
  }
  if (
    node.type === "ImportSpecifier" &&
    RANDOM_IMPORTS.includes(String((node.imported as Node).name))
  ) {
    return String((node.imported as Node).name);
  }
  return timer(node);
}

function timer(node: Node): Finding {
  const name = dotted(node)?.replace(/^globalThis\./, "");
  if (name && TIMERS.includes(name)) return name;
  const source = node.type === "ImportDeclaration" ? (node.source as Node).value : undefined;
  return TIMER_MODULES.includes(String(source)) ? String(source) : undefined;
}

/** `a.b.c` of a plain member expression or identifier; undefined for anything else. */
function dotted(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === "Identifier") return String(node.name);
  if (node.type !== "MemberExpression" || node.computed === true) return undefined;
  const object = dotted(node.object);
  return object === undefined ? undefined : `${object}.${(node.property as Node).name}`;
}

function templateText(node: Node): string | undefined {
  if (node.type !== "TemplateLiteral") return undefined;
  return (node.quasis as { value: { raw: string } }[]).map(({ value }) => value.raw).join(" ? ");
}

function exportedNames(node: Node): string[] {
  const specifiers = (node.specifiers as { exported: Node }[]).map(({ exported }) => exported);
  const declaration = node.declaration as Node | null;
  const declared = (declaration?.declarations as { id: Node }[] | undefined)?.map(({ id }) => id);
  const own = declaration && isNode(declaration.id) ? [declaration.id] : [];
  return [...specifiers, ...(declared ?? own)].map(({ name }) => String(name));
}

/** The words of a camelCase, PascalCase or CONSTANT_CASE name. */
function words(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split("_");
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

test("the modules that the benchmarks import from the built package exist", () => {
  const missing = scriptsIn("bench").flatMap((name) =>
    [...readFileSync(path.join(ROOT, name), "utf8").matchAll(TAKEN)].flatMap(
      ([, names = "", file = ""]) => {
        const source = readFileSync(path.join(ROOT, `src/${file}.ts`), "utf8");
        return names
          .split(",")
          .map((each) => each.trim())
          .filter((each) => !new RegExp(`^export [^;]*\\b${each}\\b`, "m").test(source))
          .map((each) => `${name}: ${each} of src/${file}.ts`);
      },
    ),
  );
  expect(missing).toEqual([]);
});

test("neither the library nor its HTTP handler imports code that starts programs", () => {
  const seen = new Set<string>();
  const packages = new Set<string>();
  const visit = (name: string) => {
    if (seen.has(name)) return;
    seen.add(name);
    const file = SRC.find((each) => each.name === name);
    for (const node of (file?.program.body ?? []) as Node[]) {
      const source = (node.source as Node | null | undefined)?.value;
      const isTypeOnly = node.importKind === "type" || node.exportKind === "type";
      if (typeof source !== "string" || isTypeOnly) continue;
      if (source.startsWith("."))
        visit(path.posix.join(path.posix.dirname(name), source).replace(/\.js$/, ".ts"));
      else packages.add(source);
    }
  };
  for (const entry of ["src/index.ts", "src/http/index.ts"]) visit(entry);
  expect(seen.size).toBeGreaterThan(100);
  // Drivers come when a database of their kind is opened; nothing else is native, or needed by everybody.
  expect([...packages].filter((name) => !name.startsWith("node:"))).toEqual(["zod"]);
  expect([...packages]).not.toContain("node:child_process");
  expect([...packages].filter((name) => /^node:(fs|worker_threads)/.test(name))).toEqual([]);
});
