// The frames of pages: a page's head, a panel, a list of facts, and the empty state.

import type { ReactNode } from "react";
import { useEffect } from "react";

export function PageHead(props: {
  readonly title: string;
  /** Shown before the title: the link back. */
  readonly before?: ReactNode;
  readonly after?: ReactNode;
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
}) {
  const { title, before, after, lead, actions } = props;
  useEffect(() => {
    document.title = `${title} · Holdfast`;
  }, [title]);
  return (
    <header className="mb-4 flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
      <div className="min-w-0">
        {before === undefined ? null : <div className="mb-0.5 text-xs text-muted">{before}</div>}
        <div className="flex flex-wrap items-center gap-2">
          <h1 className="text-xl leading-7 font-semibold tracking-tight">{title}</h1>
          {after}
        </div>
        {lead === undefined ? null : <div className="mt-0.5 max-w-3xl text-muted">{lead}</div>}
      </div>
      {actions === undefined ? null : (
        <div className="flex flex-wrap items-center gap-2">{actions}</div>
      )}
    </header>
  );
}

export function Panel(props: {
  readonly title?: string;
  readonly note?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Without padding: for a table, or a chart that reaches the edge. */
  readonly isFlush?: boolean;
  readonly className?: string;
}) {
  const { title, note, actions, children, isFlush = false, className = "" } = props;
  return (
    <section
      aria-label={title}
      className={`min-w-0 overflow-hidden rounded-lg border border-line bg-surface ${className}`}
    >
      {title === undefined ? null : (
        <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-1 px-4 pt-3 pb-2">
          <div className="flex min-w-0 flex-wrap items-baseline gap-x-2">
            <h2 className="font-semibold">{title}</h2>
            {note === undefined ? null : <span className="text-xs text-muted">{note}</span>}
          </div>
          {actions}
        </div>
      )}
      <div className={isFlush ? "" : title === undefined ? "p-4" : "px-4 pb-4"}>{children}</div>
    </section>
  );
}

export function Facts({ facts }: { readonly facts: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[minmax(6.5rem,auto)_minmax(0,1fr)] gap-x-4 gap-y-1.5">
      {facts.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="min-w-0">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The empty state: what would be here, and how it comes about. */
export function Empty(props: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="px-4 py-10 text-center">
      <p className="font-medium">{props.title}</p>
      <div className="mx-auto mt-1 max-w-md text-muted">{props.children}</div>
    </div>
  );
}

export function Code({ children }: { readonly children: string }) {
  return (
    <code className="rounded bg-sunken px-1 py-px font-mono text-[0.85em] break-words">
      {children}
    </code>
  );
}

/** Rows of the final height while the real ones load, so that nothing moves when they arrive. */
export function Waiting({ rows = 3 }: { readonly rows?: number }) {
  return (
    <div role="status" aria-label="Loading" className="grid gap-2 p-4">
      {Array.from({ length: rows }, (_, row) => `row-${row}`).map((key) => (
        <div key={key} className="pulse h-5 rounded bg-sunken" />
      ))}
    </div>
  );
}
