// Shows JSON: folded below the first levels, searchable, copied with one click. Everything is text; nothing in it is
// ever parsed as markup.

import { useMemo, useState } from "react";
import { CopyButton } from "./copy.js";
import { Panel } from "./panel.js";

const OPEN_DEPTH = 2;
const MEMBERS_SHOWN = 200;
const TEXT_SHOWN = 2_000;

export function JsonView({ title, value }: { readonly title: string; readonly value: unknown }) {
  const [text, setText] = useState("");
  const whole = useMemo(() => JSON.stringify(value, null, 2) ?? "null", [value]);
  return (
    <Panel
      title={title}
      actions={
        <div className="flex items-center gap-1">
          {whole.length > 200 ? (
            <input
              className="field min-h-7 w-36 py-0.5 text-xs"
              type="search"
              aria-label={`Search in ${title.toLowerCase()}`}
              placeholder="Search"
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          ) : null}
          <CopyButton text={whole} what={`the ${title.toLowerCase()}`} />
        </div>
      }
    >
      <section
        className="max-h-96 overflow-auto font-mono text-xs leading-5"
        aria-label={`${title} as JSON`}
        tabIndex={whole.length > 600 ? 0 : undefined}
      >
        <Node value={value} depth={0} search={text.toLowerCase()} />
      </section>
    </Panel>
  );
}

function Node(props: {
  readonly name?: string;
  readonly value: unknown;
  readonly depth: number;
  readonly search: string;
}) {
  const { name, value, depth, search } = props;
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : null;
  const label = name === undefined ? null : <span className="text-muted">{name}: </span>;
  if (entries === null || entries.length === 0)
    return (
      <div className={isHit(name, value, search) ? "bg-late/25" : ""}>
        {label}
        <Plain value={value} />
      </div>
    );
  const isHitInside = search !== "" && JSON.stringify(value).toLowerCase().includes(search);
  const isOpen = depth < OPEN_DEPTH || isHitInside;
  const brackets = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details open={isOpen}>
      <summary className={isHit(name, null, search) ? "bg-late/25" : ""}>
        {label}
        <span className="text-muted">{brackets}</span>
      </summary>
      <div className="border-l border-line pl-4">
        {entries.slice(0, MEMBERS_SHOWN).map(([key, member]) => (
          <Node key={key} name={key} value={member} depth={depth + 1} search={search} />
        ))}
        {entries.length > MEMBERS_SHOWN ? (
          <div className="text-muted">
            and {entries.length - MEMBERS_SHOWN} more: copy it to see all
          </div>
        ) : null}
      </div>
    </details>
  );
}

function Plain({ value }: { readonly value: unknown }) {
  if (typeof value === "string")
    return (
      <span className="whitespace-pre-wrap text-ok-ink">
        {JSON.stringify(value.length > TEXT_SHOWN ? `${value.slice(0, TEXT_SHOWN)}…` : value)}
      </span>
    );
  if (typeof value === "number") return <span className="text-running-ink">{String(value)}</span>;
  return <span className="text-skipped-ink">{JSON.stringify(value) ?? "null"}</span>;
}

function isHit(name: string | undefined, value: unknown, search: string): boolean {
  if (search === "") return false;
  return `${name ?? ""} ${typeof value === "object" ? "" : String(value)}`
    .toLowerCase()
    .includes(search);
}
