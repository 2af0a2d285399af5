// A shop that imports products for its customers: never more than two imports of one customer at once,
// never more than ten mails in a second, one search index for many changes, one digest in an hour.

import { Holdfast } from "holdfast";

export type World = {
  import(customer: string, file: string): Promise<void>;
  mail(to: string): Promise<void>;
  index(product: string): Promise<void>;
};

export function newShop(database: string, world: World) {
  const holdfast = new Holdfast({ database, poll: "100ms" });

  // Exact over all instances: many files of one customer do not delay the others.
  const importFile = holdfast.job("import", {
    concurrency: { limit: 2, key: "customer.id" },
    async run({ customer, file }: { customer: { id: string }; file: string }) {
      await world.import(customer.id, file);
    },
  });

  // The limit of the mail relay.
  const mail = holdfast.job("mail", {
    rate: { limit: 10, per: "1s" },
    async run({ to }: { to: string }) {
      await world.mail(to);
    },
  });

  const reindex = holdfast.job("reindex", {
    async run({ product }: { product: string }) {
      await world.index(product);
    },
  });

  return {
    holdfast,
    importFile: (id: string, file: string) => importFile.enqueue({ customer: { id }, file }),
    mail: (to: string) => mail.enqueue({ to }),
    /** Debounce: many changes, one index, shortly after the last of them. */
    changed: (product: string) =>
      reindex.enqueue(
        { product },
        { key: product, delay: "300ms", maxWait: "5s", onDuplicate: "postpone", keyFor: "live" },
      ),
    /** Throttle: one mail in an hour, however often it is requested. */
    remind: (to: string) => mail.enqueue({ to }, { key: `remind ${to}`, keyFor: "1h" }),
  };
}
