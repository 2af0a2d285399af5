// Copies a text; says that it did.

import { useState } from "react";
import { Button } from "./button.js";

export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const [isDone, setDone] = useState(false);
  return (
    <Button
      kind="quiet"
      isSmall
      aria-label={`Copy ${what}`}
      onClick={() => {
        void navigator.clipboard?.writeText(text).then(() => {
          setDone(true);
          window.setTimeout(() => setDone(false), 1_500);
        });
      }}
    >
      <span className="inline-block w-12 text-center">{isDone ? "Copied" : "Copy"}</span>
    </Button>
  );
}
