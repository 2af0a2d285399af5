// Refusals of the library in the words of the command line: the members of its options under the
// names of the flags that gave them. A wrong value is a wrong call, whoever found it.

import type { Problem } from "../../shared/errors.js";
import { prop, textProp } from "../../shared/thrown.js";
import { UsageError } from "./usage.js";

const FLAG_OF_MEMBER: ReadonlyMap<string, string> = new Map([
  ["calendars", "--calendar"],
  ["tags", "--tag"],
  ["windows", "--window"],
  ["missed.run", "--missed"],
]);

/** `verb`: how the library names the options in its problems, such as "schedules.upsert()". */
export async function underFlagNames<T>(verb: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const problems = problemsOf(error);
    const isOurs = problems.length > 0 && problems.every(({ field }) => field.startsWith(verb));
    if (!isOurs) throw error;
    throw new UsageError(problems.map((problem) => refusal(problem, verb)).join("\n"));
  }
}

/** The same for a list, whose filters are called as the flags that were given for them. */
export async function underGivenFlags<T>(flags: object, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const problems = problemsOf(error);
    const memberOf = ({ field }: Problem) => field.slice(field.lastIndexOf(".") + 1);
    // What is wrong with the database itself is no wrong call.
    const isGiven = (each: Problem) =>
      each.field !== "database" && Object.hasOwn(flags, memberOf(each));
    const isOurs = problems.length > 0 && problems.every(isGiven);
    if (!isOurs) throw error;
    throw new UsageError(
      problems.map((each) => `--${kebab(memberOf(each))}: ${each.message}`).join("\n"),
    );
  }
}

/** By its code: the configuration file may bring its own copy of the library. */
function problemsOf(error: unknown): readonly Problem[] {
  if (textProp(error, "code") !== "CONFIGURATION_INVALID") return [];
  return prop(error, "problems") as readonly Problem[];
}

function refusal({ field, message }: Problem, verb: string): string {
  const member = field.slice(verb.length).replace(/^\./, "");
  if (member === "") return `It ${message}`;
  const path = member.replace(/\[\d+\]/g, "");
  const [first = "", ...rest] = path.split(".");
  // One flag has all of them, as JSON.
  if (first === "alerts" && rest.length > 0) return `--alerts: ${rest.join(".")} ${message}`;
  const flag = FLAG_OF_MEMBER.get(path) ?? FLAG_OF_MEMBER.get(first) ?? `--${kebab(path)}`;
  return `${flag}: ${message}`;
}

function kebab(path: string): string {
  return path.replace(/\./g, "-").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
