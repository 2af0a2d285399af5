// A reconciliation: one run finds the addresses, each address gets a run of its own, and one run follows all of them
// with the counts. An address that cannot be reconciled does not delay the others.

import { type BatchCounts, Holdfast } from "holdfast";

export type Books = {
  addresses(): Promise<readonly string[]>;
  reconcile(address: string): Promise<{ corrections: number }>;
};

export function newReconciliation(database: string, books: Books) {
  const holdfast = new Holdfast({ database });
  const reports: BatchCounts[] = [];

  const address = holdfast.job("reconcile-address", {
    retry: { attempts: 2, delay: "50ms" },
    input: addressInput(),
    run: ({ address }) => books.reconcile(address),
  });

  const report = holdfast.job("reconciliation-report", {
    run(counts: BatchCounts) {
      reports.push(counts);
      return counts;
    },
  });

  const reconciliation = holdfast.job("reconciliation", {
    async run({ day }: { day: string }, ctx) {
      const found = await books.addresses();
      // All of them in one transaction. If this attempt dies right after it, the next one gets the same result and
      // makes nothing twice. The run does not wait: `report` follows the last address.
      return ctx.enqueueBatch(
        found.map((each) => ({
          job: address,
          input: { address: each },
          key: `${day} ${each}`,
        })),
        { then: report },
      );
    },
  });

  return {
    holdfast,
    reports,
    /** Requested twice for one day, it runs once. */
    start: (day: string) => reconciliation.enqueue({ day }, { key: day }),
  };
}

/** Any Standard Schema does; this one is written by hand. */
function addressInput() {
  type Input = { readonly address: string };
  return {
    "~standard": {
      version: 1 as const,
      vendor: "example",
      validate: (value: unknown) => {
        const { address } = (value ?? {}) as Partial<Input>;
        return typeof address === "string" && address.startsWith("0x")
          ? { value: { address } }
          : { issues: [{ message: "must begin with 0x", path: ["address"] }] };
      },
      types: {} as { input: Input; output: Input },
    },
  };
}
