// A short message about the result of an action, at the edge of the page; it moves nothing and disappears by itself.

import { createContext, type ReactNode, use, useCallback, useState } from "react";

type Tone = "ok" | "failed";
type Say = (text: string, tone?: Tone) => void;
const ToastContext = createContext<Say>(() => undefined);
const STAYS_MS = 6_000;
let nextId = 1;

export function ToastProvider({ children }: { readonly children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly { id: number; text: string; tone: Tone }[]>([]);
  const say = useCallback<Say>((text, tone = "ok") => {
    const id = nextId++;
    setToasts((known) => [...known.slice(-3), { id, text, tone }]);
    window.setTimeout(() => setToasts((known) => known.filter((each) => each.id !== id)), STAYS_MS);
  }, []);
  return (
    <ToastContext value={say}>
      {children}
      <div
        aria-live="polite"
        className="pointer-events-none fixed right-3 bottom-3 z-50 grid max-w-[min(26rem,calc(100vw-1.5rem))] gap-2"
      >
        {toasts.map(({ id, text, tone }) => (
          <div
            key={id}
            className={`rounded-lg border bg-surface px-4 py-2.5 shadow-lg ${tone === "ok" ? "border-line" : "border-failed/60 text-failed-ink"}`}
          >
            {text}
          </div>
        ))}
      </div>
    </ToastContext>
  );
}

export function useToast(): Say {
  return use(ToastContext);
}
