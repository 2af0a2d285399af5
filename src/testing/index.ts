// The public interface of `holdfast/testing`, name by name.

export type { Idle, LogLine, RestartOptions, RunFilter, TestKit, TestOptions } from "./kit.js";
export { createTestHoldfast } from "./kit.js";
export type { Call } from "./kit-handlers.js";
export type { TestHoldfastOptions } from "./kit-instance.js";
export type { LockProviderCase, LockProviderCasesParams } from "./lock-cases.js";
export { lockProviderCases } from "./lock-cases.js";
