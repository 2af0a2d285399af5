// Loads the code of some pages later: when they are first shown, or earlier once the page is idle. Not React's `lazy`,
// which delays the content by 300 ms after it has shown a placeholder.

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

/** So that opening another page does not begin with loading its code. */
export function fetchAhead(): void {
  const fetchAll = async () => {
    for (const fetch of fetches) await fetch().catch(() => undefined);
  };
  if ("requestIdleCallback" in window) window.requestIdleCallback(() => void fetchAll());
  else setTimeout(() => void fetchAll(), 1_000);
}
