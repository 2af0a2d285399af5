// Parts of the page whose code comes later: when they are first shown, or ahead of that once the page is idle.
// Not `lazy` of React: it holds what came back for 300 ms once it has shown that something is to come.

import { type ComponentType, useEffect, useState } from "react";
import { Waiting } from "../shared/panel.js";

const fetches: (() => Promise<unknown>)[] = [];

export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  let Loaded: ComponentType<Props> | null = null;
  const fetch = async () => {
    Loaded ??= await load();
  };
  fetches.push(fetch);
  return function Later(props: Props) {
    const [, setCame] = useState(Loaded !== null);
    const [failure, setFailure] = useState<{ readonly error: unknown } | null>(null);
    useEffect(() => {
      if (Loaded === null)
        fetch().then(
          () => setCame(true),
          (error: unknown) => setFailure({ error }),
        );
    }, []);
    if (failure !== null) throw failure.error;
    return Loaded === null ? <Waiting rows={6} /> : <Loaded {...props} />;
  };
}

/** So that the way to another page does not begin with waiting for its code. */
export function fetchAhead(): void {
  const fetchAll = async () => {
    for (const fetch of fetches) await fetch().catch(() => undefined);
  };
  if ("requestIdleCallback" in window) window.requestIdleCallback(() => void fetchAll());
  else setTimeout(() => void fetchAll(), 1_000);
}
