// OpenTelemetry as applications set it up, with what it makes kept in memory.

import * as api from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";

export type Spans = {
  readonly api: typeof api;
  /** The ended spans, in the order of their ends. */
  readonly ended: () => readonly ReadableSpan[];
  readonly end: () => Promise<void>;
};

export function collectSpans(): Spans {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const manager = new AsyncLocalStorageContextManager().enable();
  api.trace.setGlobalTracerProvider(provider);
  api.context.setGlobalContextManager(manager);
  return {
    api,
    ended: () => exporter.getFinishedSpans(),
    end: async () => {
      await provider.shutdown();
      api.trace.disable();
      api.context.disable();
    },
  };
}
