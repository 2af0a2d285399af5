// The filter of the list of runs. It is stored in the address, so that a link to a list can be shared.

import { useSearchParams } from "wouter";

export const FILTERS = ["status", "job", "schedule", "mode", "tag", "text", "from", "to"] as const;
export type FilterName = (typeof FILTERS)[number];
export type Filter = Partial<Record<FilterName, string>>;

export function useFilter(): readonly [Filter, (part: Filter) => void] {
  const [search, setSearch] = useSearchParams();
  const filter: Filter = {};
  for (const name of FILTERS) {
    const value = search.get(name);
    if (value) filter[name] = value;
  }
  const change = (part: Filter) =>
    setSearch(
      () => {
        // The current address: several fields may change at the same moment.
        const next = new URLSearchParams(window.location.search);
        for (const [name, value] of Object.entries(part)) {
          if (value) next.set(name, value);
          else next.delete(name);
        }
        return next;
      },
      { replace: true },
    );
  return [filter, change];
}
