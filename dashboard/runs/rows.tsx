// The rows of the list: only rows near the screen exist, so that a hundred thousand render as fast as ten.

import { memo, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { Run } from "../api/wire.js";
import { useNow } from "../live/live.js";
import { durationText, shortId } from "../shared/format.js";
import { RunBadge } from "../shared/status.js";
import { Ago } from "../shared/time.js";

const WIDE = 38;
const NARROW = 62;
const SPARE = 12;

export function RunRows(props: {
  readonly runs: readonly Run[];
  readonly at: number;
  readonly chosen: ReadonlySet<string>;
  readonly choose: ((id: string) => void) | null;
  readonly look: (from: number, to: number) => void;
  readonly more: (() => void) | null;
}) {
  const { runs, at, chosen, choose, look, more } = props;
  const frame = useRef<HTMLDivElement>(null);
  const { from, to, height } = useVisible(frame, runs.length);
  useEffect(() => {
    look(from, to);
    if (more && to >= runs.length - 60) more();
  }, [from, to, runs.length, look, more]);
  useEffect(() => {
    const element = frame.current;
    if (at < 0 || !element) return;
    const top = element.getBoundingClientRect().top + at * height;
    if (top < 60) window.scrollBy({ top: top - 80 });
    else if (top + height > window.innerHeight - 60)
      window.scrollBy({ top: top + height - window.innerHeight + 80 });
  }, [at, height]);
  return (
    <>
      <div aria-hidden="true" className={`${COLUMNS} px-3 py-1.5 text-xs text-muted max-sm:hidden`}>
        {HEADS.map((name) => (
          <span key={name}>{name}</span>
        ))}
      </div>
      <div ref={frame} className="relative" style={{ height: runs.length * height }}>
        <ol aria-label="Runs">
          {runs.slice(from, to).map((run, index) => (
            <Row
              key={run.id}
              run={run}
              top={(from + index) * height}
              height={height}
              no={from + index}
              count={runs.length}
              isAt={from + index === at}
              isChosen={chosen.has(run.id)}
              choose={choose}
            />
          ))}
        </ol>
      </div>
    </>
  );
}

const HEADS = ["", "Status", "Job", "Run", "Input", "Mode", "Attempt", "Took", "Stored"];

const COLUMNS =
  "sm:grid sm:items-center sm:gap-x-3 sm:grid-cols-[1.1rem_6.6rem_minmax(7rem,13rem)_5.2rem_minmax(0,1fr)_5.5rem_4rem_5rem_5.5rem] max-lg:sm:grid-cols-[1.1rem_6.6rem_minmax(7rem,1fr)_5.2rem_0_5.5rem_4rem_5rem_5.5rem]";

/** Rendered again only when its own data changed: scrolling only moves the others. */
const Row = memo(function Row(props: {
  readonly run: Run;
  readonly top: number;
  readonly height: number;
  readonly no: number;
  readonly count: number;
  readonly isAt: boolean;
  readonly isChosen: boolean;
  readonly choose: ((id: string) => void) | null;
}) {
  const { run, top, height, no, count, isAt, isChosen, choose } = props;
  return (
    <li
      aria-posinset={no + 1}
      aria-setsize={count}
      data-run={run.id}
      className={`absolute inset-x-0 border-t border-line px-3 hover:bg-sunken/60 ${COLUMNS} ${isAt ? "bg-sunken shadow-[inset_2px_0_var(--accent)]" : ""} max-sm:flex max-sm:flex-wrap max-sm:content-center max-sm:items-center max-sm:gap-x-2`}
      style={{ top, height }}
    >
      <span className="leading-none">
        {choose ? (
          <input
            type="checkbox"
            className="size-4 accent-accent"
            aria-label={`Choose run ${shortId(run.id)}`}
            checked={isChosen}
            onChange={() => choose(run.id)}
          />
        ) : null}
      </span>
      <span>
        <RunBadge status={run.status} partial={run.partial} />
      </span>
      <span className="truncate font-medium max-sm:min-w-0 max-sm:flex-[1_0_55%]">
        <Link href={`/runs/${run.id}`} className="hover:text-accent hover:underline">
          {run.job}
        </Link>
      </span>
      <span className="font-mono text-xs text-muted max-sm:hidden" title={run.id}>
        {shortId(run.id)}
      </span>
      <span className="truncate font-mono text-xs text-muted max-lg:hidden">
        {run.status === "failed" && run.error ? (
          <span className="font-sans text-failed-ink">{run.error.message}</span>
        ) : (
          inputText(run.input)
        )}
      </span>
      <span
        className="truncate text-xs text-muted lg:col-start-6"
        title={run.schedule ?? undefined}
      >
        {run.mode}
      </span>
      <span className="text-xs text-muted max-sm:hidden">{run.attempt}</span>
      <span className="text-xs">
        <Took run={run} />
      </span>
      <span className="text-xs text-muted max-sm:ml-auto max-sm:w-20">
        <Ago at={run.createdAt} />
      </span>
    </li>
  );
});

function Took({ run }: { readonly run: Run }) {
  if (run.durationMs !== null) return durationText(run.durationMs);
  if (run.status === "running" && run.startedAt !== null) return <Since at={run.startedAt} />;
  return <span className="text-muted">–</span>;
}

function Since({ at }: { readonly at: string }) {
  const now = useNow();
  return (
    <span className="text-running-ink">{durationText(Math.max(0, now - Date.parse(at)))}</span>
  );
}

function inputText(input: unknown): string {
  return input === null ? "" : JSON.stringify(input).slice(0, 300);
}

/** The rows near the screen, by the scroll position of the page. */
function useVisible(frame: React.RefObject<HTMLDivElement | null>, count: number) {
  const [view, setView] = useState({ from: 0, to: 60, height: WIDE });
  useEffect(() => {
    // The media query of the style sheet, so that the row height matches its content.
    const narrow = window.matchMedia("(width < 40rem)");
    const measure = () => {
      const top = frame.current?.getBoundingClientRect().top ?? 0;
      const height = narrow.matches ? NARROW : WIDE;
      const first = Math.max(0, Math.floor(-top / height) - SPARE);
      const from = Math.min(first, Math.max(0, count - 1));
      const to = Math.min(count, from + Math.ceil(window.innerHeight / height) + 2 * SPARE);
      setView((before) =>
        before.from === from && before.to === to && before.height === height
          ? before
          : { from, to, height },
      );
    };
    measure();
    window.addEventListener("scroll", measure, { passive: true });
    window.addEventListener("resize", measure);
    narrow.addEventListener("change", measure);
    return () => {
      narrow.removeEventListener("change", measure);
      window.removeEventListener("scroll", measure);
      window.removeEventListener("resize", measure);
    };
  }, [frame, count]);
  return view;
}
