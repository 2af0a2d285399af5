// Copies a text, and confirms it.

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
        void copy(text).then(() => {
          setDone(true);
          window.setTimeout(() => setDone(false), 1_500);
        });
      }}
    >
      <span className="inline-block w-12 text-center">{isDone ? "Copied" : "Copy"}</span>
    </Button>
  );
}

/** Browsers give their clipboard to pages under https and on this machine; on other pages only the old way works. */
async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
