// Lists that come page by page: how the next page is asked for, and the button for it.

import { useInfiniteQuery } from "@tanstack/react-query";
import { Button } from "./button.js";

/** More than these are not kept: who looks for something older filters. */
const PAGES_MAX = 20;

type Fetching = { readonly cursor: string | undefined; readonly signal: AbortSignal };

export function usePages<Page extends { readonly nextCursor: string | null }>(
  key: readonly (string | boolean | undefined)[],
  fetchPage: (fetching: Fetching) => Promise<Page>,
) {
  return useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => fetchPage({ cursor: pageParam, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    maxPages: PAGES_MAX,
  });
}

export function NextPage({
  of: pages,
  label = "Older",
}: {
  readonly of: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    fetchNextPage(): unknown;
  };
  readonly label?: string;
}) {
  if (!pages.hasNextPage) return null;
  return (
    <div className="border-t border-line p-2 text-center">
      <Button
        isSmall
        onClick={() => void pages.fetchNextPage()}
        disabled={pages.isFetchingNextPage}
      >
        {label}
      </Button>
    </div>
  );
}
