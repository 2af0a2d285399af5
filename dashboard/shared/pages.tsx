// Lists that load page by page, and the button for the next page.

import { useInfiniteQuery } from "@tanstack/react-query";
import { Button } from "./button.js";

/** More pages are not kept: to find something older, filter the list. */
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
