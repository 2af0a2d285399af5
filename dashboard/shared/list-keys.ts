// Moves through a list by keyboard: j and k, Enter, x. The current row is stored by its position.

import { useEffect, useState } from "react";
import { isTyping } from "../shell/keys.js";

export function useListKeys(params: {
  readonly count: number;
  readonly open: (index: number) => void;
  readonly choose?: (index: number) => void;
  readonly show?: (index: number) => void;
}): number {
  const { count, open, choose, show } = params;
  const [at, setAt] = useState(-1);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event) || count === 0) return;
      if (event.key === "j" || event.key === "k") {
        const next = Math.min(count - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)));
        setAt(next);
        show?.(next);
        event.preventDefault();
      }
      const isOnControl = event.target instanceof HTMLElement && event.target !== document.body;
      if (event.key === "Enter" && at >= 0 && !isOnControl) open(at);
      if (event.key === "x" && at >= 0) choose?.(at);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [at, count, open, choose, show]);
  return at;
}
