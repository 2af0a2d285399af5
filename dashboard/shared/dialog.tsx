// A dialog over the page. The browser's own: it keeps the focus inside, and Escape closes it.

import { type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./button.js";

export function Dialog(props: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly isWide?: boolean;
}) {
  const { title, onClose, children, isWide = false } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={titleId}
      onClose={onClose}
      onCancel={onClose}
      className={`m-auto max-h-[92dvh] w-[calc(100vw-1.5rem)] overflow-y-auto rounded-xl border border-line bg-surface p-0 text-ink shadow-2xl ${isWide ? "max-w-4xl" : "max-w-lg"}`}
    >
      <div className="flex items-start justify-between gap-3 px-5 pt-4">
        <h2 id={titleId} className="text-lg font-semibold tracking-tight">
          {title}
        </h2>
        <Button kind="quiet" isSmall aria-label="Close" onClick={onClose}>
          ✕
        </Button>
      </div>
      <div className="px-5 pt-2 pb-5">{children}</div>
    </dialog>
  );
}
