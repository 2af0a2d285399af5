// The runs: filtered by the address; several can be selected, cancelled and retried together.

import { useCallback, useState } from "react";
import { useLocation } from "wouter";
import { Button } from "../shared/button.js";
import { numberText } from "../shared/format.js";
import { useListKeys } from "../shared/list-keys.js";
import { Code, Empty, PageHead, Panel, Waiting } from "../shared/panel.js";
import { RefusalNote } from "../shared/refusal.js";
import { useMay } from "../shell/me.js";
import { ChosenBar } from "./chosen-bar.js";
import { EnqueueDialog } from "./enqueue-dialog.js";
import { FILTERS, useFilter } from "./filter.js";
import { FilterBar } from "./filter-bar.js";
import { useRunPages } from "./pages.js";
import { RunRows } from "./rows.js";

export function Runs() {
  const [filter, change] = useFilter();
  const [isHovered, setHovered] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isEnqueueing, setEnqueueing] = useState(false);
  const mayChange = useMay("admin");
  const mayEnqueue = useMay("enqueue");
  const [, navigate] = useLocation();
  const pages = useRunPages(filter, isHovered || chosen.size > 0);
  const { runs } = pages;
  const choose = useCallback(
    (id: string) =>
      setChosen((before) => {
        const next = new Set(before);
        if (!next.delete(id)) next.add(id);
        return next;
      }),
    [],
  );
  const at = useListKeys({
    count: runs.length,
    open: (index) => navigate(`/runs/${runs[index]?.id ?? ""}`),
    choose: (index) => {
      const run = runs[index];
      if (run && mayChange) choose(run.id);
    },
  });
  const isFiltered = FILTERS.some((name) => filter[name] !== undefined);
  return (
    <>
      <PageHead
        title="Runs"
        actions={
          mayEnqueue ? (
            <Button kind="main" onClick={() => setEnqueueing(true)}>
              Enqueue a run
            </Button>
          ) : undefined
        }
      />
      <FilterBar filter={filter} change={change} />
      {pages.error ? <RefusalNote error={pages.error} retry={pages.showNewer} /> : null}
      {/* Its room is always there: what is new must not move what is read. */}
      <div className="flex h-8 items-center justify-between text-xs text-muted">
        <span aria-live="polite">
          {pages.isReading
            ? "…"
            : `${numberText(runs.length)}${pages.hasMore ? "+" : ""} ${runs.length === 1 ? "run" : "runs"}`}
        </span>
        {pages.newer > 0 ? (
          <Button isSmall kind="main" onClick={pages.showNewer}>
            {pages.newer >= 100 ? "100+" : pages.newer} newer: show
          </Button>
        ) : null}
      </div>
      <div onPointerEnter={() => setHovered(true)} onPointerLeave={() => setHovered(false)}>
        <Panel isFlush>
          {pages.isReading && runs.length === 0 ? (
            <Waiting rows={8} />
          ) : runs.length === 0 ? (
            isFiltered ? (
              <Empty title="No run fits">Remove a part of the filter, or clear it.</Empty>
            ) : (
              <Empty title="No runs yet">
                A run is made by a schedule, or by <Code>{"job.enqueue(input)"}</Code>
                {mayEnqueue ? ", or with the button above." : "."}
              </Empty>
            )
          ) : (
            <RunRows
              runs={runs}
              at={at}
              chosen={chosen}
              choose={mayChange ? choose : null}
              look={pages.look}
              more={pages.hasMore ? pages.more : null}
            />
          )}
        </Panel>
      </div>
      {chosen.size > 0 ? (
        <ChosenBar
          runs={runs.filter(({ id }) => chosen.has(id))}
          all={() => setChosen(new Set(runs.map(({ id }) => id)))}
          clear={() => setChosen(new Set())}
        />
      ) : null}
      {isEnqueueing ? (
        <EnqueueDialog
          onClose={() => setEnqueueing(false)}
          onDone={(id) => navigate(`/runs/${id}`)}
        />
      ) : null}
    </>
  );
}
