// The keyboard: `?` for this list, `g` and a letter to go somewhere, and what lists bind for themselves.

import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { Dialog } from "../shared/dialog.js";
import { PAGES } from "./pages.js";

const SEQUENCE_MS = 1_200;

/** Letters typed into a field are meant for the field. */
export function isTyping(event: KeyboardEvent): boolean {
  const { target } = event;
  if (event.metaKey || event.ctrlKey || event.altKey) return true;
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) ||
      target.closest("dialog") !== null)
  );
}

export function useGlobalKeys({ help }: { readonly help: () => void }): void {
  const [, navigate] = useLocation();
  const pendingAt = useRef(0);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      if (event.key === "?") help();
      if (event.key === "/") {
        const search = document.querySelector<HTMLElement>("[data-search]");
        if (search) {
          event.preventDefault();
          search.focus();
        }
      }
      if (event.key === "g") pendingAt.current = event.timeStamp;
      else if (event.timeStamp - pendingAt.current < SEQUENCE_MS) {
        const page = PAGES.flatMap(({ pages }) => [...pages]).find(({ key }) => key === event.key);
        if (page) {
          event.preventDefault();
          navigate(page.path);
        }
        pendingAt.current = 0;
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [help, navigate]);
}

export function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  const keys: readonly (readonly [string, string])[] = [
    ["j  k", "next and previous row of a list"],
    ["Enter", "open the row"],
    ["x", "select the row"],
    ["/", "to the search of this page"],
    ["Esc", "close a dialog, leave a field"],
    ...PAGES.flatMap(({ pages }) => pages.map(({ key, name }) => [`g  ${key}`, name] as const)),
    ["?", "this list"],
  ];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="grid grid-cols-[6rem_minmax(0,1fr)] gap-y-2">
        {keys.map(([key, words]) => (
          <div key={key} className="contents">
            <dt>
              <kbd className="rounded border border-line bg-sunken px-1.5 py-0.5 font-mono text-xs whitespace-pre">
                {key}
              </kbd>
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
