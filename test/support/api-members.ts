// Reads the public interface from the source: the members of a class with their parameters, their results and the
// comments above them, and the names that an entry exports.

import { readFileSync } from "node:fs";
import path from "node:path";
import { parseSync } from "vite";

type Node = { type: string; start: number; end: number; [key: string]: unknown };
export type Member = { call: string; answers: string; words: string };

const ROOT = path.resolve(import.meta.dirname, "../..");
/** An answer that is spelled out at length says more in the editor than in a table. */
const ANSWER_MAX = 60;

/** The public members of a class, in the order of the source; of overloads the first. */
export function membersOfClass(file: string, name: string): Member[] {
  const text = readFileSync(path.join(ROOT, file), "utf8");
  const parsed = parseSync(file, text);
  const body = classNamed(parsed.program.body as unknown as Node[], name);
  const seen = new Map<string, Member>();
  for (const node of body) {
    const key = node.key as Node | undefined;
    if (key?.type !== "Identifier" || node.accessibility === "private") continue;
    const member = String(key.name);
    if (member === "constructor" || node.declare === true || seen.has(member)) continue;
    const described = describe(text, node, member);
    if (!described.words.startsWith("@internal")) seen.set(member, described);
  }
  return [...seen.values()];
}

function classNamed(statements: Node[], name: string): Node[] {
  for (const statement of statements) {
    const declared = (statement.declaration as Node | null) ?? statement;
    if (declared.type !== "ClassDeclaration") continue;
    if ((declared.id as Node).name === name) return (declared.body as { body: Node[] }).body;
  }
  throw new Error(`There is no class ${name}.`);
}

function describe(text: string, node: Node, name: string): Member {
  const words = wordsAbove(text, node.start);
  if (node.type !== "MethodDefinition" && node.type !== "TSAbstractMethodDefinition")
    return { call: name, answers: typeOf(text, node), words };
  const value = node.value as Node;
  const answers = typeText(text, value.returnType as Node | null);
  if (node.kind === "get") return { call: name, answers, words };
  const params = (value.params as Node[]).map((each) => parameter(text, each));
  return { call: `${name}(${params.join(", ")})`, answers, words };
}

function parameter(text: string, node: Node): string {
  if (node.type === "AssignmentPattern") return `${parameter(text, node.left as Node)}?`;
  if (node.type === "ObjectPattern") return "options";
  if (node.type === "RestElement") return `...${parameter(text, node.argument as Node)}`;
  return `${String(node.name)}${node.optional ? "?" : ""}`;
}

function typeOf(text: string, node: Node): string {
  return typeText(text, node.typeAnnotation as Node | null);
}

/** As written, without the promise around it and without what only says that it is not to be changed. */
function typeText(text: string, annotation: Node | null): string {
  if (!annotation) return "";
  const written = text
    .slice(annotation.start, annotation.end)
    .replace(/^:\s*/, "")
    .replace(/^Promise<(.*)>$/s, "$1")
    .replaceAll(/\breadonly /g, "")
    .replaceAll(/\s+/g, " ")
    .trim();
  if (written === "void") return "";
  return written.length > ANSWER_MAX ? "an object" : written;
}

/** The comment right before it. */
function wordsAbove(text: string, start: number): string {
  const before = text.slice(0, start);
  const [, comment = ""] = /\/\*\*((?:(?!\*\/).)*)\*\/\s*$/s.exec(before) ?? [];
  return comment
    .replaceAll(/^\s*\* ?/gm, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** The names that an entry of the package exports, values and types apart. */
export function exportedBy(file: string): { values: string[]; types: string[] } {
  const text = readFileSync(path.join(ROOT, file), "utf8");
  const values: string[] = [];
  const types: string[] = [];
  for (const [, isType, list = ""] of text.matchAll(/^export (type )?\{([^}]*)\}/gms))
    for (const each of list.split(",").map((one) => one.trim()))
      if (each !== "")
        (isType || each.startsWith("type ") ? types : values).push(each.replace(/^type /, ""));
  for (const [, kind = "", name = ""] of text.matchAll(
    /^export (?:async )?(type|interface|function|class|const) (\w+)/gm,
  ))
    (kind === "type" || kind === "interface" ? types : values).push(name);
  return { values: values.sort(), types: types.sort() };
}
